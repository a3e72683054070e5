/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A fork while other threads submit, log, create, destroy and collect figures: lib/base/fork.c. The fork waits for the
 * registry's lock, the lock of each object in it, and the log's; the child is the thread that forked, with memory as it
 * was. It must find nothing half done and every lock free once it has given its own back, and must not take an
 * inherited object for one of its own.
 *
 * check.sh runs this once as it is and once for each fault FAULT_..., which must be found. */

#define OBJECTS 2
#define NOBODY  255

byte registry = NOBODY;       /* who holds the lock */
byte log_lock = NOBODY;
byte lock[OBJECTS] = NOBODY;
bool registered[OBJECTS];
bool half_done[OBJECTS];      /* in the middle of a critical section */
bool list_half_done;
bool is_child;                /* the others do not exist any more */
byte generation;
byte made_in[OBJECTS];        /* the generation of creation */
byte ended;

/* The skips let others in: Spin goes from the end of one atomic block to the beginning of the next without that. */
#define TAKE(l, who)    skip; atomic { !is_child && l == NOBODY -> l = who }
#define GIVE(l)         skip; atomic { !is_child -> l = NOBODY }
#define BEGIN(flag)     skip; atomic { !is_child -> flag = true }

/* Submits to object o, and logs when it has given the lock back. */
proctype user(byte me; byte o)
{
    TAKE(lock[o], me);
    BEGIN(half_done[o]);
    skip;
    atomic { !is_child -> half_done[o] = false }
    GIVE(lock[o]);
    TAKE(log_lock, me);
    GIVE(log_lock);
    atomic { !is_child -> ended++ }
}

/* Creates object 1: it is registered when it is whole; and destroys it. */
proctype creator(byte me)
{
    TAKE(registry, me);
    BEGIN(list_half_done);
    skip;
    atomic { !is_child -> registered[1] = true; list_half_done = false }
    GIVE(registry);
    TAKE(lock[1], me);
    BEGIN(half_done[1]);
    skip;
    atomic { !is_child -> half_done[1] = false }
    GIVE(lock[1]);
    TAKE(registry, me);
    BEGIN(list_half_done);
    skip;
    atomic { !is_child -> registered[1] = false; list_half_done = false }
    GIVE(registry);
    atomic { !is_child -> ended++ }
}

/* Collects figures: visits object 0 under the registry's lock. */
proctype collector(byte me)
{
#ifdef FAULT_NESTING
    TAKE(lock[0], me);
    TAKE(registry, me);
    GIVE(registry);
    GIVE(lock[0]);
#else
    TAKE(registry, me);
    TAKE(lock[0], me);
    GIVE(lock[0]);
    GIVE(registry);
#endif
    atomic { !is_child -> ended++ }
}

/* The child: its calls on what it has inherited, then a pool of its own. */
inline live_as_child()
{
    assert(!list_half_done && !half_done[0] && !half_done[1]);
#ifndef FAULT_GENERATION
    generation++;
#endif
    assert(made_in[0] != generation); /* else it would wait for workers that do not exist */
    log_lock == NOBODY;
    registry == NOBODY;
    lock[0] == NOBODY;
    lock[1] == NOBODY
}

proctype forker(byte me)
{
    bool held[OBJECTS];
    byte o = 0;
#ifndef FAULT_REGISTRY
    TAKE(registry, me);
#endif
    do
    :: o < OBJECTS ->
        if
#ifdef FAULT_OBJECT
        :: o == 0 -> skip
        :: o != 0 && registered[o] -> TAKE(lock[o], me); held[o] = true
#else
        :: registered[o] -> TAKE(lock[o], me); held[o] = true
#endif
        :: else
        fi;
        o++
    :: else -> break
    od;
#ifndef FAULT_LOG
    TAKE(log_lock, me);
#endif
    skip;
    /* fork: this is one of the two that go on from here */
    atomic {
        if
        :: is_child = true
        :: true
        fi;
        o = 0;
#ifndef FAULT_LOG
        log_lock = NOBODY;
#endif
        do
        :: o < OBJECTS ->
            if
            :: held[o] -> lock[o] = NOBODY
            :: else
            fi;
            o++
        :: else -> break
        od;
#ifndef FAULT_REGISTRY
        registry = NOBODY
#endif
    }
    if
    :: is_child -> live_as_child()
    :: else
    fi;
    ended = 10
}

init {
    atomic {
        registered[0] = true;
        run user(0, 0);
        run creator(1);
        run collector(2);
        run user(3, 0);
        run forker(4)
    }
}

/* As a parent or as a child, the thread that forked comes to its end. */
ltl ends { <> (ended >= 10) }
