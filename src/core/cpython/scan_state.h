/* SPDX-License-Identifier: MIT */
/*
 * Which of all thread states runs on a thread? Over a memory reader, for the thread itself and from
 * outside. Private to this room.
 *
 * A state notes the thread that it was made for. A thread may have several, one for each
 * sub-interpreter that it enters. Of those the attached one runs; if none is, the one that entered
 * an evaluation loop last: what a loop keeps on the C stack then lies lowest.
 */
#ifndef PATHPROF_CORE_CPYTHON_SCAN_STATE_H
#define PATHPROF_CORE_CPYTHON_SCAN_STATE_H

#include "core/base/load.h"
#include "core/cpython/cpython.h"
#include "core/cpython/layout.h"
#include "core/cpython/state_notes.h"

struct state_scan {
	struct reader reader;
	const struct cpython *cpython;
	const struct cpython_layout *layout;
	uint32_t tid;
	struct state_notes *notes; /* what the scan comes by is noted there; NULL: nowhere */
};

/** state_is_of_thread - does the state note this thread? */
static inline bool state_is_of_thread(struct reader reader, const struct cpython_layout *layout,
				      uint64_t state, uint32_t tid)
{
	uint64_t native_id;

	return load_u64(reader, state + layout->state_native_id, &native_id) && native_id == tid;
}

/** state_is_attached - is the state its thread's current one? From 3.12 on. */
static inline bool state_is_attached(struct reader reader, const struct cpython_layout *layout,
				     uint64_t state)
{
	uint32_t word;

	if (!layout->state_attached)
		return load_u32(reader, state + layout->state_status, &word) &&
		       word & STATE_STATUS_ACTIVE;
	return load_u32(reader, state + layout->state_attached, &word) && word == STATE_ATTACHED;
}

/**
 * state_noted - the state that scans found to note this thread
 * A hint: it may be gone. Returns 0 where none was met, or another thread's has its place, or the
 * thread has several.
 */
uint64_t state_noted(const struct state_notes *notes, uint32_t tid);

/** state_holds_lock - does the state hold its interpreter's lock, or is it attached? */
bool state_holds_lock(const struct state_scan *scan, uint64_t state);

/**
 * state_scan - the state that runs on the thread
 * @candidate: a state to be considered with the others; 0: none. Returned if no other runs
 * Other threads change the lists meanwhile: what is read may be stale, and costs nothing else.
 * Returns 0 where no state of the thread runs anything. Bounded: see the constants. Signal-safe.
 */
uint64_t state_scan(const struct state_scan *scan, uint64_t candidate, bool *ret_holds_lock);

#endif
