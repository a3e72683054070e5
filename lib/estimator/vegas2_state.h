/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_VEGAS2_STATE_H
#define WEIR_VEGAS2_STATE_H

/* What vegas2 remembers, and the numbers it goes by. */

#include <stdbool.h>
#include <stdint.h>

#define MARGIN            0.23 /* the high phase stands MARGIN * sqrt(c) + REST above c */
#define REST              0.9
#define TOGETHER_HIGH     2.5  /* RTTs of the high phase that clients which drain together take to get there ... */
#define TOGETHER_LOW      2.0  /* ... and of the baseline, to look at it */
#define LOW               0.30 /* share of c that the low phase stays below it */
#define PRECISION         0.04 /* standard error of the mean RTT that a window is sized for */
#define STARTUP_PRECISION 0.3  /* and while it starts */
#define GROWTH_PRECISION  0.2  /* and while it grows */
#define RESOLUTION        0.03 /* error that no sample size removes: drift, timers, calls that wait for each other */
#define SIGNIFICANT       3.0  /* standard errors that make a difference a fact */
#define CHANCE            0.75 /* and of each of several that chance may explain */
#define OUT_OF_TURN       3.5  /* and where each of thousands of windows has a chance to make one */
#define DRIFT_RATE        1e-4 /* variance that a window adds to what is known of mu, relative */
#define DRIFT_RTT         2e-5 /* and a low phase to what is known of R0 */
#define SETTLE            1.5  /* RTTs until the effect of a cut is in */
#define SETTLE_UP         1.0  /* and of a growth */
#define BOUND             0.85 /* share of the limit in flight from which on the limit was what held the callers back */
#define QUEUE             1.1  /* R/R0 that shows a queue, noise aside */
#define CHANGED           1.2  /* R above what the high phase causes itself that shows a change, noise aside */
#define LEAST_TRUST       0.8  /* share of mu that windows between two drains cannot take away */
#define EVIDENCE          3.0  /* log likelihood ratio that the knee is further up */
#define LESS              0.8  /* share of the load below which a window is a different point of the curve */
#define SURE              6.0  /* influence that an event shows, and the most that can be gathered */
#define ALONE_UNSURE      4u   /* cells in one of which a client drains alone */
#define ALONE_SURE        16u
#define TELLING           0.1 /* margin by c from which on a single look says much ... */
#define ALONE_TELLING     2u  /* ... and is worth more of them */
#define FAR_MORE          2.2 /* times the own margin: others have fallen silent as well, or it is more than a margin */
#define SOLITARY          3.0 /* solitude that allows trials ... */
#define SURELY_ALONE      4.5 /* ... where cv2 is above QUIET; elsewhere solitude and influence both */
#define FOREIGN           0.08         /* queue, by R0, that clients make together at the least */
#define STALE             0.97         /* what a drain leaves of it */
#define CUT               0.4          /* of a permit that others leave out of REST: their fractions are not cut off */
#define TRIAL             1.4          /* step of the limit that shows whether the throughput follows */
#define TRIAL_DOWN        1.15         /* and downwards at least, where a large one may cross the knee of R0 */
#define TRIAL_EVIDENCE    4.5          /* log likelihood ratio that decides it: a wrong knee is kept for long */
#define TRIAL_PRECISION   0.018        /* relative error of the throughput before, at most */
#define WORTH             0.2          /* of a growth of the load that the throughput has to follow ... */
#define WORTH_BY          0.35         /* ... and of how much it did follow so far */
#define WANDER            0.02         /* relative error of a throughput that no number of samples removes */
#define FEWEST_PERMITS    6.0          /* below, a step is no small one */
#define LONGEST_PAUSE     64           /* drains between two trials */
#define SAME              1.02         /* a ratio that is none */
#define OPENING           16u          /* calls in a block of the first ones */
#define FLOODED           1.5          /* R of a later block by that of the first that shows a queue */
#define INFLUENCE         0.85         /* fall of R after an own cut that shows that the queue was the own one */
#define LOSS              0.05         /* share of dropped outcomes from which on they count as overload */
#define LOSS_SIGNIFICANT  2.0          /* standard errors that the share has to be above that */
#define LOSS_OUTCOMES     1000.0       /* that are waited for until it is or is not */
#define USUAL_MOST        0.6          /* share of dropped outcomes that may have nothing to do with the limit ... */
#define USUAL_MEMORY      60.0         /* ... and outcomes of low phases that it is averaged over */
#define RECENT            400.0        /* last outcomes that the share before the cuts is taken from */
#define SPARED            0.75         /* of the limit that lost calls, where that would show at the latest */
#define EDGE              0.05         /* of the limit that it may stay below the one that loses calls */
#define EDGE_DROPS        3.0          /* dropped calls that show it, at least ... */
#define EDGE_DROPS_MORE   5.0          /* ... and times as many of all as below it */
#define EDGE_RTTS         50.0         /* before the first attempt to go beyond, at least */
#define EDGE_LONGEST_NS   60000000000u /* between two such attempts, and as much more as before the first */
#define DRAIN_RTTS        80.0         /* between two low phases, at least */
#define STARTUP_ERROR     0.15         /* relative error of what the first windows say: the fast calls end first */
#define NEW_ERROR         0.05 /* relative error of a baseline that was seen once: calls that began together queue together */
#define YOUNG             2u     /* drains that come sooner after a change of the baseline, which was seen once */
#define STEP              0.1    /* the first of a growth */
#define FASTEST           0.7    /* and the last */
#define EMERGENCY_RTTS    8.0    /* between two drains while the baseline is in doubt */
#define GUST              0.25   /* a jump of R from window to window that is more than what other clients do to it */
#define FARTHEST          0.35   /* and what counts of it at most */
#define FEW_JUMPS         2.0    /* that are a change of the downstream, there and back */
#define GUST_WINDOWS      80.0   /* windows that jumps are averaged over */
#define GUST_SINCE        64u    /* drains before which it is more likely that others join */
#define GUSTS             3.0    /* standard deviation of R by that of a jump: a gust outlasts a window */
#define GUSTY             0.05   /* wander from which on windows in a row say the same */
#define GUST_DRAINS       64.0   /* part of the squared wander that a low phase adds to what is not known of R0 */
#define PRIOR_CV2         0.5    /* variation expected before there is a sample ... */
#define PRIOR_SAMPLES     8.0    /* ... which counts as much as these many */
#define MEMORY            1000.0 /* samples that the coefficient of variation is averaged over, at least */
#define FEWEST            16.0   /* samples of a window, at least */
#define FEWEST_KNOWN      4.0    /* and while it starts from a baseline that is known */
#define SHORTEST_BY       10.0 /* times as long as the calls that are back first those of a window may be on average */
#define MOST              5000.0 /* and at most */
#define OLD_NS            5e9    /* age from which on a window closes with what it has */
#define OLD_RTTS          20.0
#define OLD_SAMPLES       10.0
#define MURKY             0.1 /* squared coefficient of variation, without a queue, from which on R does not tell whose that is */
#define MURKY_QUEUE       1.25  /* R/R0 that cv2 is corrected for at most: beyond, R0 is the more likely to be wrong */
#define MURKIEST          16.0  /* times as long as elsewhere a dip may take */
#define DIP               4.0   /* RTTs that clients look at the baseline together where R is murky, after ... */
#define DIP_SETTLE        2.0   /* ... those until all have drained */
#define DIP_RTTS          100.0 /* between two dips, at least */
#define DIP_SHARE         (1.0 / 32) /* of the time between two dips that one lasts at least, for clocks differ */
#define DIP_LATE          1.0        /* RTTs after the boundary from which on a client leaves a dip out */
#define RAISED            0.3 /* relative error of a baseline from before the first dip, if it is above that one: a queue ... */
#define LOWERED           0.1  /* ... and if it is below */
#define DRIFT_MURKY       6e-4 /* DRIFT_RATE where R is murky: what is shared becomes equal the sooner */
#define WIDER             1.2 /* share of the margin that is added to it there, for what is not known of R0 must be less ... */
#define WIDER_MOST        0.12  /* ... and of c at most */
#define FASTEST_MURKY     0.14  /* FASTEST there: the others' share is taken as easily as what is free */
#define START_NOISY       0.1   /* STARTUP_PRECISION where cv2 is above QUIET */
#define FEW_DIPS          2.0   /* blur above which dips come too seldom to wait for two of them */
#define NOISY             0.04  /* relative standard deviation of R0 from which on it is taken wherever it can be had */
#define GUESS             0.25  /* relative variance of a mu that was not measured */
#define LEAST_ERROR       1e-3  /* standard error of a constant RTT: nothing divides by 0 */
#define SLOWEST           1e-13 /* mu is at least a call in three hours */
#define FRESH             3u    /* windows after a low phase in which others may still be drained */
#define QUIET             0.3   /* squared coefficient of variation of an RTT that a few samples tell */
#define CROWD             10.0  /* permits below which a client is likely to be one of many */
#define FAR_SLOWER        4.0   /* times as slow as no crowd of clients becomes at once that hold few permits each */
#define NEGLIGIBLE_NS     1.5e5 /* a queue up to that RTT is none: about the time until a thread runs that is woken */
#define DOUBTS            4u    /* drains after which a doubt ends ... */
#define DOUBTS_QUIET      16u   /* ... and where R is quiet, for there it is likely to end by itself */
#define CROWDED           2u    /* verdicts for a crowd after which its clients would all have given way */
#define COARSE            8u    /* cells of the grid, of which the first is the one that most clients share */
#define NEWCOMER_RTTS     12.0  /* between the first drains of a client that may have come into a crowd */
#define NEWCOMER_DRAINS   4u    /* how many those are */
#define NEWCOMER_LIMIT    16.0  /* up to which a client doubles that has only seen R as it found it */
#define NEWCOMER_STEP     0.25  /* and its growth from there on */
#define UNVERIFIED        8.0   /* an initial limit above may be beyond the knee already */
#define LONGEST_NS        3.6e12 /* an RTT above an hour is not believed */
#define LONGEST_WAIT_NS   1e11   /* and nothing waits longer than that for a change to take effect */
#define SECOND_NS         1000000000u

enum trial { NO_TRIAL, UPWARDS, DOWNWARDS };

enum phase { STARTUP, REGROWTH, HIGH_PHASE, LOW_PHASE };

/* A figure and the relative variance of what is known of it. */
struct estimate {
    double value;
    double variance;
};

/* Successful samples since the window began. */
struct window {
    double n;
    double rtt;       /* sum */
    double rtt2;      /* sum of squares */
    double in_flight; /* sum, as seen by each call at its grant */
    uint64_t begin_ns;
};

/* What a closed window says. */
struct verdict {
    double rtt;  /* R */
    double load; /* N */
    double rate; /* X = N/R */
    double se;   /* relative standard error of R */
    bool bound;
};

/* The first calls of a limiter that starts with a high limit. */
struct opening {
    unsigned calls;
    double first;      /* mean RTT of the first block of them, ns ... */
    double last;       /* ... and of the last block */
    uint64_t began_ns; /* end of the first block */
};

/* Outcomes of calls, and how many of them were dropped. */
struct tally {
    double seen;
    double dropped;
};

/* What dropped calls say of a limit that the downstream itself has. */
struct losses {
    struct tally recent;  /* of the last calls at any limit */
    struct tally verdict; /* since the last one */
    struct tally moved;   /* of calls that began since the limit moved */
    struct tally below;   /* of the last calls at limits that are known to be safe */
    double safe;          /* most permits that a window without loss had; 0: unknown */
    double lossy;         /* fewest that calls were dropped at and not below; 0: none known */
    uint64_t wait_ns;     /* between the last attempt to go beyond and the next */
    uint64_t until_ns;    /* when that is */

    /* Cuts that follow each other, until it is known whether fewer calls are dropped at a lower limit. */
    double first;        /* permits before the first of them */
    struct estimate mu;  /* then */
    struct tally before; /* of the last calls until then */
    struct tally lower;  /* and of those where the downstream should drop fewer if it is the limit that it minds */
    bool decided;        /* whether it does, or there was no cut */
    double served;       /* calls that succeeded of those that began before the last cut */
    bool served_known;   /* they are all back, or there was no cut */
    struct tally usual;  /* what is dropped at any limit; none seen: nothing */

    uint32_t put_off;       /* calls that succeeded, and are not in the tallies yet */
    uint32_t put_off_moved; /* those of them that began since the limit moved */
    uint32_t put_off_most;  /* the next one has to be taken in, and they with it, for it may decide something */
};

struct vegas2 {
    double min_limit;
    double max_limit;
    double ceiling; /* no RTT above this becomes the baseline; 0: none */
    uint64_t drain_interval;
    int64_t wall_offset; /* realtime minus monotonic */

    enum phase phase;
    double limit;   /* exact */
    double permits; /* what callers see of it, a whole number */
    double dither;  /* share of a permit above which the fraction counts as one more */
    struct estimate mu;
    struct estimate r0;  /* value 0: not yet seen */
    double risen;        /* by how many standard errors drains have found R0 too low; a cumulative sum */
    double sunk;         /* and too high */
    double queue;        /* R/R0 - 1 in the high phase, averaged over some ten windows */
    double murk;         /* cv2 as it would be without a queue, averaged over windows by their samples */
    double murk_weight;  /* samples that it stands for */
    double level;        /* R in the high phase, averaged over some ten windows: the same for all clients */
    double usual;        /* N of the same windows */
    double rtt;          /* R of the last window */
    double cv2_weight;   /* samples that cv2 stands for */
    struct verdict last; /* the last bound window of the high phase; R 0: none */
    double jumps;        /* mean square of the moves of R between two of them that are no chance, relative */
    double unrest;   /* mean square of how far R is from its average of some ten windows, less what chance explains */
    double span;     /* ns that the last window of the high phase took */
    double cv2;      /* squared coefficient of variation of the RTT, averaged over windows */
    double growth;   /* by which the limit grows while nothing queues */
    double step;     /* the last such growth */
    double evidence; /* for a knee further up; a cumulative sum that never falls below 0 */
    double enough;   /* how much of it makes the high phase grow */
    struct window high;    /* since the last low phase: n is the sum of 1/se^2, rtt that of R/se^2; high windows only */
    struct verdict alarm;  /* the window that made the last low phase off the grid necessary */
    struct verdict before; /* the last low window if its R was too high for a drained downstream; else R is 0 */
    double bend;           /* R at the knee by R0: 1 unless calls hinder each other */
    enum trial trial;      /* under way */
    bool down_next;        /* the next trial is downwards: it goes on as long as one finds something */
    double slow_rtt;       /* R of the last drain together with others if it was too high; else 0 */
    double low_load;       /* N of the last low window */
    bool unconfirmed;      /* a trial has moved the knee up, and no drain alone has shown R to follow from there */
    unsigned trial_in;     /* drains until the next one */
    unsigned trial_pause;  /* drains between the last one and the next */
    struct window trial_windows; /* sums weighted by 1/se^2 */
    double doubtful_rtt;         /* R when the doubt arose */
    struct estimate suspected;   /* mu then */
    double exit_rtt;             /* R that ended the startup, until a low phase has explained it; 0: none */
    double believed;             /* c before the limit was cut to learn why R had risen */
    double verified;             /* mu when the baseline was last measured */
    double influence; /* log likelihood ratio that R follows this client's own limit rather than those of others */
    double solitude;  /* that it follows this client's limit alone rather than that of a second one as well */
    bool credited;    /* the baseline rose on that ground, and no common drain has confirmed it yet */

    uint64_t now_ns;      /* latest end of a sample */
    uint64_t cut_ns;      /* when the limit was last lowered: calls granted before do not tell about it */
    uint64_t moved_ns;    /* when the limit last changed */
    uint64_t open_ns;     /* samples that end before belong to the previous limit */
    uint64_t regular;     /* length of the grid's cells, emergencies and newcomers aside */
    uint64_t interval;    /* length of the cells in use */
    uint64_t due_ns;      /* wall clock: when the next low phase begins */
    uint64_t alone_ns;    /* wall clock: when one begins that no other client shares; UINT64_MAX: not in this cell */
    uint64_t own_moment;  /* a number that other clients do not have */
    uint64_t drained_ns;  /* wall clock: when the last low phase began */
    uint64_t together_ns; /* when the clients that drain at the same time stop doing so; 0: unknown */
    bool alone;           /* this low phase is to show whose queue it is */
    bool looked;          /* the client has drained alone since it last did so on the grid */
    bool on_grid;         /* this low phase began on a boundary of the grid in use */
    bool coarse;          /* and on a boundary that clients with longer cells share */
    bool aligned;         /* this low phase began on the grid, so others drain as well */
    bool verified_r0;     /* the baseline has been seen at a low limit */
    bool anchored;        /* and in a drain that all clients share */
    bool started_high;    /* the initial limit may have been beyond the knee */
    bool seen_idle;       /* the baseline was seen while little was in flight */
    unsigned fresh;       /* windows of this high phase still to come that do not tell whether the knee is further up */
    unsigned doubts;      /* drains running that have not ended the doubt */
    bool in_doubt;        /* R rose and did not fall with the limit: a higher baseline, or the queue of others */
    unsigned crowded;     /* verdicts running that R, which did not fall with the limit, is the queue of a crowd */
    double crowded_c;     /* c before the first of them */
    unsigned young;       /* drains that come sooner, for the baseline has just changed */
    unsigned confirmed;   /* drains running that have not lowered the baseline */
    unsigned grown;       /* windows running that have grown */
    bool fell;            /* the last low window lowered the baseline: this one refines it */
    bool rising;          /* raised, and no call seen yet that was granted since */
    bool falling;         /* lowered, and in flight not yet seen at or below the limit */

    struct opening opening;
    struct window window;
    struct losses losses;

    uint64_t windows;
    uint64_t drains;
    const char *reason;
};

#endif
