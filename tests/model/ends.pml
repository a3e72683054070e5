/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* How jobs end: started and run, cancelled by their owner, expired by the keeper, or cancelled by a shutdown, while the
 * limit changes. Each atomic block is a critical section of the pool's lock; names are those of lib/pool. Sleeping and
 * waking are wake.pml's: here everybody looks as often as need be.
 *
 * Every job that was accepted ends once, and its end is told once; all permits come back; running jobs never exceed the
 * limit of their grant, but for a job that is heavier and runs alone; a raise lets in at once whom it has room for, also
 * during a shutdown that finishes, and a cut takes nothing away; what was queued when a shutdown cancels never starts
 * (what has its permits may), whatever the limit does; shutdown returns when all has ended and been told, nothing is
 * accepted after that; and it does return.
 *
 * check.sh runs this once as it is and once for each fault FAULT_..., which must be found. */

/* Between two critical sections: Spin goes from the end of one atomic block to the beginning of the next without
 * letting anybody in. */
#define UNLOCKED skip

#define JOBS    2
#define WORKERS 2

mtype = { NEW, QUEUED, READY, RUNNING, ENDED };
mtype state[JOBS] = NEW;
bool timed[JOBS];        /* on the wheel of deadlines */
byte ends[JOBS];
byte told[JOBS];
bool accepted[JOBS];
bool too_late[JOBS];     /* it was queued when a shutdown began to cancel */
byte limit = 2;
byte out;                /* permits, reserved or in flight */
byte executing, queued, ready, delivering;
bool closing, held, returned;
byte refused;

/* The last job has two permits. */
#define WEIGHT(j)  (1 + (j == JOBS - 1))
#define FITS(j)    (out + WEIGHT(j) <= limit || out == 0)
#define IS_EMPTY   (queued == 0 && ready == 0 && executing == 0 && delivering == 0)

/* The line is served in the order of the jobs' numbers; a job that does not fit keeps the ones behind it. */
inline hand_out(k)
{
    k = 0;
    do
    :: k < JOBS && state[k] != QUEUED -> k++
    :: k < JOBS && state[k] == QUEUED && !held && FITS(k) ->
        state[k] = READY;
        queued--;
        ready++;
        out = out + WEIGHT(k);
        assert(out <= limit || out == WEIGHT(k));
#ifndef FAULT_TIMER
        timed[k] = false;
#endif
        k++
    :: else -> break
    od;
    k = 0
}

inline end_waiting(j)
{
    if
    :: state[j] == QUEUED -> queued--
    :: state[j] == READY ->
        ready--;
#ifndef FAULT_PERMITS
        out = out - WEIGHT(j)
#endif
    :: else
    fi;
    timed[j] = false;
    state[j] = ENDED;
    ends[j]++;
#ifndef FAULT_DELIVERING
    delivering++
#endif
}

inline deliver(j)
{
    told[j]++;
    assert(!returned)
}

inline delivered()
{
#ifndef FAULT_DELIVERING
    delivering--
#else
    skip
#endif
}

proctype worker()
{
    byte j = 0;
    byte k = 0;
    do
    :: atomic {
        ready > 0 ->
        j = 0;
        do
        :: state[j] != READY -> j++
        :: else -> break
        od;
        assert(!returned && !too_late[j]);
        state[j] = RUNNING;
        ready--;
        executing++
       }
       UNLOCKED;
       atomic {
        executing--;
        out = out - WEIGHT(j);
        state[j] = ENDED;
        ends[j]++;
        delivering++;
        hand_out(k)
       }
       UNLOCKED;
       atomic { deliver(j); delivering-- }
       j = 0
    :: returned -> break
    od
}

/* The owner of a job. */
proctype owner(byte j)
{
    byte k = 0;
    mtype seen = NEW;
    atomic { state[j] != NEW || returned -> seen = state[j] }
    UNLOCKED;
    if
    :: seen == ENDED || seen == NEW -> goto done
    :: else
    fi;
    atomic {
#ifndef FAULT_LOOK
        seen = state[j];
#endif
        if
        :: seen == QUEUED || seen == READY -> end_waiting(j); hand_out(k)
        :: else -> goto done
        fi
    }
    UNLOCKED;
    atomic { deliver(j) }
    UNLOCKED;
    atomic { delivered() }
done:
    skip
}

/* Time is not modelled: a deadline may pass at any moment. */
proctype keeper()
{
    byte j = 0;
    byte k = 0;
    do
    :: atomic {
        timed[0] || timed[1] ->
        if
        :: timed[0] -> j = 0
        :: timed[1] -> j = 1
        fi;
        end_waiting(j);
        hand_out(k)
       }
       UNLOCKED;
       atomic { deliver(j) }
       UNLOCKED;
       atomic { delivered() }
       j = 0
    :: returned -> break
    od
}

proctype submitter()
{
    byte j = 0;
    byte k = 0;
    do
    :: j < JOBS ->
#ifdef FAULT_LATE
        if
        :: closing -> refused++; j++; goto next
        :: else
        fi;
#endif
        atomic {
            if
#ifndef FAULT_LATE
            :: closing -> refused++
            :: else ->
#else
            :: true ->
#endif
                assert(!returned);
                accepted[j] = true;
                state[j] = QUEUED;
                queued++;
                hand_out(k);
                if
                :: state[j] == QUEUED -> timed[j] = true
                :: true
                fi
            fi;
            j++
        }
next:   skip
    :: else -> break
    od;
    j = 0
}

/* Nobody waits whom the limit has room for. */
inline check_idle_room(k)
{
    k = 0;
    do
    :: k < JOBS && state[k] != QUEUED -> k++
    :: else -> break
    od;
    assert(k == JOBS || held || !FITS(k));
    k = 0
}

inline cut(to)
{
    limit = to
#ifdef FAULT_CUT
    ;
    if
    :: closing && out > limit -> out = limit /* as if who runs had given back the rest */
    :: else
    fi
#endif
}

inline raise(to, k, was_held)
{
    limit = to;
#ifdef FAULT_ADMIT
    was_held = held;
    held = false;
#endif
#ifdef FAULT_RAISE
    if
    :: closing
    :: else -> hand_out(k)
    fi;
#else
    hand_out(k);
#endif
#ifdef FAULT_ADMIT
    held = was_held;
#endif
    check_idle_room(k)
}

/* Samples of jobs that end move the limit, before and during a shutdown. */
proctype estimator()
{
    byte k = 0;
    bool was_held;
    atomic { cut(1) }
    UNLOCKED;
    atomic { raise(3, k, was_held) }
}

/* The program changes MAX_LIMIT during a shutdown: a cut, or a cut and a raise. */
proctype configure()
{
    byte k = 0;
    bool was_held;
    atomic { closing -> cut(1) }
    UNLOCKED;
    if
    :: atomic { raise(2, k, was_held) }
    :: true
    fi
}

proctype shutdown()
{
    byte j = 0;
    byte k = 0;
    bool wants_cancel;
    bool delivers;
    if
    :: wants_cancel = true
    :: wants_cancel = false
    fi;
    atomic {
        closing = true;
        do
        :: wants_cancel && j < JOBS -> too_late[j] = (state[j] == QUEUED); j++
        :: else -> break
        od;
        j = 0;
#ifndef FAULT_HELD
        held = wants_cancel;
#endif
    }
    do
    :: wants_cancel && j < JOBS ->
        atomic {
            delivers = (state[j] == QUEUED || state[j] == READY);
            if
            :: delivers -> end_waiting(j); hand_out(k)
            :: else
            fi
        }
        UNLOCKED;
        if
        :: delivers ->
            UNLOCKED;
            atomic { deliver(j) }
            UNLOCKED;
            atomic { delivered() }
        :: else
        fi;
        j++
    :: else -> break
    od;
    j = 0;
    atomic { IS_EMPTY -> returned = true }
    do
    :: j < JOBS ->
        assert(ends[j] == (accepted[j] -> 1 : 0) && told[j] == ends[j]);
        j++
    :: else -> break
    od;
    assert(out == 0)
}

init {
    atomic {
        run worker();
        run worker();
        run owner(0);
        run owner(1);
        run keeper();
        run submitter();
        run estimator();
        run configure();
        run shutdown()
    }
}

ltl returns { <> returned }
