/* SPDX-License-Identifier: MIT */
/*
 * Stacks of threads that stand still, read from outside: no signal, no ptrace, nothing stops.
 *
 *   wall.c       who stands, for how long; whom to look at
 *   estimate.c   what a wait counts for
 *   switches.c   the kernel's switch records: exact times, and the proof that a thread stood still
 *   standing.c   the same by polling /proc, where perf events are refused
 *   stack.c      the look: frames and code objects by process_vm_readv(), checked, interned
 *   wait_kind.c  what a standing thread waits for
 */
#ifndef PATHPROF_TOOL_READER_READER_H
#define PATHPROF_TOOL_READER_READER_H

#include <sys/types.h>

#include "core/base/errbuf.h"
#include "core/memory/memory.h"

#define WALL_PERIOD_NS 10000000ull /* between two glances, where nobody says otherwise */

/*
 * A time in which a thread did not run, and its stack then. Of duration 0, at the end of a thread:
 * it stands for waits that were not looked at.
 */
struct wall_wait {
	uint32_t tid;
	uint32_t native, python; /* nodes */
	enum wait_kind kind;
	uint64_t start_ns, duration_ns; /* the wait's own */
	uint64_t count; /* ns of waiting that it stands for: the duration, or more */
};

/* Of one thread: exact but for `rejected`. */
struct wall_thread {
	uint32_t tid;
	uint64_t waits, waited_ns; /* all of them */
	uint64_t seen, seen_ns;	   /* those with a stack */
	uint64_t rejected;	   /* looks in which it moved, or could not be read */
};

/* Whom to watch, and where results go: called from wall_glance() and wall_finish(). */
struct wall_order {
	pid_t pid;
	struct memory *memory; /* stacks are interned here; also says which interpreter runs */
	uint64_t period_ns;    /* between glances */
	void (*wait)(void *user, const struct wall_wait *wait);
	void (*thread)(void *user, const struct wall_thread *thread); /* when it has ended */
	void *user;
};

struct wall;

/**
 * wall_new - watch the threads of a process
 * @order: copied
 * @said: a sentence for people, also where it returns 0: that /proc is polled, and why
 * Returns 0, or a negative errno with a sentence.
 */
int wall_new(const struct wall_order *order, struct wall **ret_wall, struct errbuf *said);

/** wall_free - NULL is allowed */
void wall_free(struct wall *wall);

/**
 * wall_glance - see who left and came, look at some of those who stand
 * Returns when the next glance is due, CLOCK_MONOTONIC.
 * Cost: bounded to WALL_SHARE of a CPU on average, by looking at fewer.
 */
uint64_t wall_glance(struct wall *wall);

/** wall_begin - waits are counted from @now on (--delay is over) */
void wall_begin(struct wall *wall, uint64_t now_ns);

/** wall_finish - give out every wait that still lasts, and every thread, up to @now_ns */
void wall_finish(struct wall *wall, uint64_t now_ns);

/** wall_refusals - looks that failed because the process cannot be read at all */
uint64_t wall_refusals(const struct wall *wall);

#endif
