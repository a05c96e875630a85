/* SPDX-License-Identifier: MIT */
/*
 * CPython seen from another process, by process_vm_readv(), a page at a time and many pages a call
 * (core/base/load_blocks.h). The functions are those of cpython.h, with their contracts, but for:
 *
 *   - nothing is locked and nobody is stopped: the caller knows by other means whether the thread
 *     stood still between cpython_remote_begin() and the last call, and throws away what it got if
 *     not. What moved is read wrongly, or is unreadable; no call crashes or loops;
 *   - the thread-local variables of another thread are not read: its state is searched for;
 *   - not signal-safe. The caller needs leave to read the process (ptrace access).
 *
 * Cost: a call of process_vm_readv() for the state, one or two for the frames, one for all code
 * objects; one for everything where a thread stands as in the last look. README.md has the figures.
 */
#ifndef PATHPROF_CORE_CPYTHON_REMOTE_H
#define PATHPROF_CORE_CPYTHON_REMOTE_H

#include <sys/types.h>

#include "core/base/load_blocks.h"
#include "core/cpython/cpython.h"
#include "core/cpython/state_notes.h"

#define CPYTHON_PAST_LOOKS 64 /* that are remembered, each of another thread */
#define CPYTHON_PAST_PAGES 62

/* Who waits mostly waits where it did before: the pages that the last look at a thread read. */
struct cpython_past_look {
	uint64_t thread_state;
	uint64_t nr_pages;
	uint64_t pages[CPYTHON_PAST_PAGES];
};

/* 560 KiB, on the heap or static, zeroed at first. One look at a time. */
struct cpython_remote {
	struct load_blocks blocks;
	uint64_t interpreter;  /* seen in the last look: asked for ahead */
	uint64_t thread_state; /* of the look at hand; 0: not yet known */
	struct cpython_past_look past[CPYTHON_PAST_LOOKS];
	struct state_notes notes; /* of all looks: hints */
};

/** cpython_remote_begin - begin a look at @pid: what was read of it before is forgotten */
void cpython_remote_begin(struct cpython_remote *remote, pid_t pid);

/**
 * cpython_remote_thread_state - address of the state that runs on thread @tid of the target
 * @cpython: as found in the target
 * @tid: as the target itself sees it (in its pid namespace)
 * @hint: what an earlier call for this thread returned, or 0; spares the search while there is one
 * interpreter and the state still notes the thread. So does what a search for another thread met
 * Returns 0 where no state of the thread runs anything, or nothing can be read.
 */
uint64_t cpython_remote_thread_state(struct cpython_remote *remote, const struct cpython *cpython,
				     uint32_t tid, uint64_t hint, bool *ret_holds_lock);

/**
 * cpython_remote_waits_for_lock - does a thread that is blocked on a futex wait for its
 * interpreter?
 * @thread_state: the thread's, of this look
 * @futex: the address of the futex
 * For its own lock of a sub-interpreter (from 3.12 on), or, of a free-threaded build, for the
 * world to go on that another thread stopped. The main interpreter's lock is elsewhere: in the
 * runtime's state.
 */
bool cpython_remote_waits_for_lock(struct cpython_remote *remote, const struct cpython *cpython,
				   uint64_t thread_state, uint64_t futex);

/* Room for a walk, and how it ended. */
struct cpython_remote_stack {
	struct cpython_frame *frames; /* leaf first */
	size_t max;		      /* room in @frames */
	size_t nr_frames;
	enum cpython_end end;
};

/** cpython_remote_walk - the Python frames of a thread state; the caller sets frames and max */
void cpython_remote_walk(struct cpython_remote *remote, const struct cpython *cpython,
			 uint64_t thread_state, struct cpython_remote_stack *stack);

/** cpython_remote_identify - equal to cpython_identify() of the same content; 0: unreadable */
uint64_t cpython_remote_identify(struct cpython_remote *remote, const struct cpython *cpython,
				 uint64_t code_address, struct cpython_file_memo *file_memo);

/** cpython_remote_read_code - what a recording keeps of a code object; false: unreadable */
bool cpython_remote_read_code(struct cpython_remote *remote, const struct cpython *cpython,
			      uint64_t code_address, struct cpython_code *ret_code);

/** cpython_remote_copy - copy what cpython_remote_read_code() described; false: unreadable */
bool cpython_remote_copy(struct cpython_remote *remote, uint64_t address, void *to, size_t length);

#endif
