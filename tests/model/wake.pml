/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The pool's wake-ups: line, permits, idle workers, chain, watch, inbox, batches, changes of the limit,
 * shutdown. Each atomic
 * block is a critical section of the pool's lock; names are those of lib/pool.
 *
 * What is guessed at run time is chosen freely here: how many workers are of use is any number from one on, wherever it
 * is asked. A job may be long: it ends only when all jobs have started, so that a lost wake-up is a hang. Under weak
 * fairness every job starts and, after shutdown, every worker leaves.
 *
 * check.sh runs this once as it is and once for each fault FAULT_..., which must be found. */

#ifndef WORKERS
#define WORKERS 3
#endif
#define LAST_LIMIT (WORKERS - 1) /* and the first */
#ifndef JOBS
#define JOBS 4
#endif
#define NOBODY 255

byte limit = LAST_LIMIT;
byte line, inbox, ready, running, looking, started, longs, left;
bool waking, open, closing;
bool early; /* shutdown begins while jobs wait; else it must not be what starts them */
byte watch = NOBODY;
bool idle[WORKERS];  /* on the stack; a worker that has not been started yet counts as idle */
bool token[WORKERS]; /* its parker's */
byte age[WORKERS];   /* looks of the watch since its job began; 2: no help any more */
byte helping;        /* fresh jobs and looking workers */
#define NONE      0
#define FROM_LINE 1
#define RESERVED  2
byte batch[WORKERS]; /* a job that was taken with the one that runs: from where */
bool extra[WORKERS]; /* the second of its batch had a permit of its own, which is not free until the first is booked */
byte parked;         /* such permits */
byte batched;

/* More workers would be of no use, it is said, and somebody watches. */
#ifdef FAULT_NO_WATCH
#define MAY_SUFFICE (helping >= 1)
#else
#define MAY_SUFFICE (watch != NOBODY && helping >= 1)
#endif

inline hand_out()
{
    do
    :: line > 0 && running + ready + parked < limit -> line--; ready++; assert(running + ready + parked <= limit)
    :: else -> break
    od
#ifdef FAULT_LIMIT
    ;
    if
    :: line > 0 -> line--; ready++; assert(running + ready <= limit)
    :: else
    fi
#endif
}

inline pop_idle()
{
    popped = 0;
    do
    :: popped < WORKERS && !idle[popped] -> popped++
    :: else -> break
    od;
    if
    :: popped < WORKERS -> idle[popped] = false
    :: popped == WORKERS && watch != NOBODY -> popped = watch; watch = NOBODY
    :: else -> popped = NOBODY
    fi
}

inline send_worker()
{
    if
    :: waking || ready <= looking
    :: !waking && ready > looking && MAY_SUFFICE
    :: !waking && ready > looking ->
        pop_idle();
        if
        :: popped != NOBODY -> waking = true; token[popped] = true
        :: else
        fi
    fi;
    popped = NOBODY
}

inline empty_inbox()
{
    line = line + inbox;
    inbox = 0
}

inline recall()
{
    popped = 0;
    do
    :: popped < WORKERS ->
        if
        :: batch[popped] == FROM_LINE -> line++; batched--; batch[popped] = NONE
        :: batch[popped] == RESERVED -> ready++; parked--; batched--; batch[popped] = NONE
#ifndef FAULT_BOOK
        :: extra[popped] -> extra[popped] = false; parked--
#endif
        :: else
        fi;
        popped++
    :: else -> break
    od;
    popped = NOBODY
}

inline enter()
{
#ifndef FAULT_BATCH_ENTER
    recall();
#endif
    enter_to_submit()
}

inline enter_to_submit()
{
    if
    :: open ->
        open = false;
        empty_inbox();
#ifndef FAULT_ENTER
        hand_out()
#endif
    :: !open && line > 0 -> hand_out()
    :: else
    fi
}

#define ATTENDED (running + ready + parked >= limit || waking)

inline exit()
{
    if
    :: !closing && (ATTENDED || MAY_SUFFICE) -> open = true
    :: true
    fi
}

inline mind_inbox()
{
    if
    :: !closing && (ATTENDED || MAY_SUFFICE) -> open = true
    :: closing || !ATTENDED ->
        if
        :: open ->
            open = false;
            empty_inbox();
            hand_out();
            send_worker()
        :: else
        fi
    fi
}

inline notice()
{
#ifndef FAULT_NOTICE
    if
    :: closing && line + ready + running + inbox == 0 ->
        pop_idle();
        if
        :: popped != NOBODY -> token[popped] = true
        :: else
        fi;
        popped = NOBODY
    :: else
    fi
#else
    skip
#endif
}

proctype worker(byte me)
{
    byte popped = NOBODY;
    byte i;
    bool was_quiet;

asleep:
    atomic {
        token[me] -> token[me] = false;
#ifndef FAULT_WAKING
        waking = false;
#endif
        enter()
    }
serve:
    atomic {
        if
        :: ready > 0 && helping >= 1 -> /* superfluous, it is said */
            enter();
            if
            :: watch == NOBODY -> watch = me; was_quiet = false; exit(); goto watching
            :: else -> idle[me] = true; exit(); goto asleep
            fi
        :: ready > 0 ->
            ready--; running++; started++; age[me] = 0; helping++;
#ifndef FAULT_CHAIN
            send_worker();
#endif
            mind_inbox();
            if
            :: open && ready > 0 -> ready--; parked++; batched++; batch[me] = RESERVED
            :: open && ready == 0 && line > 0 -> line--; batched++; batch[me] = FROM_LINE
            :: true
            fi
        :: else ->
#ifndef FAULT_REST
            if
            :: open -> open = false; empty_inbox()
            :: else
            fi;
#endif
#ifndef FAULT_BATCH_REST
            recall();
#endif
            if
            :: line + ready > 0 && (ready > 0 || running + parked < limit) -> hand_out(); goto serve
            :: else
            fi;
            notice();
            if
            :: closing && line + ready == 0 -> goto leave
            :: else -> idle[me] = true;
#ifndef FAULT_REST
                exit();
#endif
                goto asleep
            fi
        fi
    }
job:
    if
    :: atomic { longs < LAST_LIMIT - 1 -> longs++ }; started == JOBS
    :: true
    fi;
    if
    :: atomic { batch[me] != NONE ->
        if
        :: batch[me] == RESERVED -> extra[me] = true
        :: else
        fi;
        batch[me] = NONE; batched--; started++
       }
       goto job
    :: else
    fi;
    atomic {
        running--;
        if
        :: extra[me] -> extra[me] = false; parked--
        :: else
        fi;
        if
        :: age[me] < 2 -> helping--
        :: else
        fi;
        age[me] = 2;
        looking++; helping++;
        if
        :: true -> goto ended
        :: true -> enter(); exit() /* the samples go to the estimator, without the lock */
        fi
    }
    atomic { enter() }
ended:
    atomic {
        hand_out();
        if
        :: ready == 0 && open -> empty_inbox(); hand_out()
        :: else
        fi;
        looking--; helping--;
        goto serve
    }

watching:
    if
    :: token[me] -> goto asleep
    :: atomic {
        watch == me ->
        enter();
        i = 0;
        do
        :: i < WORKERS ->
#ifndef FAULT_STALE
            if
            :: age[i] < 2 ->
                age[i]++;
                if
                :: age[i] == 2 -> helping--
                :: else
                fi
            :: else
            fi;
#endif
            i++
        :: else -> break
        od;
        i = 0;
        if
        :: ready > looking && !waking -> /* needed, unless enough are helping */
            was_quiet = false;
            if
            :: true -> watch = NOBODY; goto serve
            :: helping >= 1 -> exit()
            fi
        :: ready == 0 && was_quiet -> watch = NOBODY; was_quiet = false; goto serve
        :: else -> was_quiet = (ready == 0); exit()
        fi
        }
        goto watching
    fi;

leave:
    atomic { enter(); left++; notice() }
}

proctype submitter(byte count)
{
    byte popped = NOBODY;
    byte i = 0;
    do
    :: i < count ->
        atomic {
            if
            :: open -> inbox++
            :: else -> enter_to_submit(); line++; hand_out(); send_worker(); exit()
            fi;
            i++
        }
    :: else -> break
    od;
    i = 0
}

proctype changes()
{
    byte popped = NOBODY;
    atomic { enter(); limit = 1; exit() }
#ifdef FAULT_RAISE
    atomic { enter(); limit = LAST_LIMIT; hand_out(); exit() }
#else
    atomic { enter(); limit = LAST_LIMIT; hand_out(); send_worker(); exit() }
#endif
}

proctype shutdown()
{
    byte popped = NOBODY;
    atomic {
        (early && started + ready + line + inbox + batched == JOBS) || started == JOBS ->
        enter(); closing = true; hand_out(); send_worker(); notice()
    }
}

init {
    byte i = 0;
    atomic {
        do
        :: i < WORKERS -> idle[i] = true; age[i] = 2; run worker(i); i++
        :: else -> break
        od;
        if
        :: early = true
        :: early = false
        fi;
        run submitter(JOBS);
        run changes();
        run shutdown();
        i = 0
    }
}

ltl ends { <> (left == WORKERS && started == JOBS && running == 0) }
