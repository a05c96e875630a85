/* SPDX-License-Identifier: MIT */
/* All interpreters' lists of thread states, looked through for one thread's. */
#include "core/cpython/scan_state.h"

#define INTERPRETERS_MAX 256  /* bound of the scan: a longer list is a cycle or a lie */
#define STATES_MAX	 4096 /* over all interpreters: 10 us */
#define FRAMES_MAX	 4096 /* down to the newest evaluation loop */
#define STATE_BYTES_MAX                                                           \
	4096 /* of a thread state; 3.15 has a frame inside it, which is no loop's \
	      */

/* What was found so far. */
struct found {
	uint32_t nr_states; /* looked at */
	uint64_t state;
	uint64_t lowest; /* address of what its newest evaluation loop keeps on the stack */
	bool attached;
};

/* 3.11 and 3.12: the cframe; that inside the state is no loop's. 0: runs nothing. */
static uint64_t newest_cframe(const struct state_scan *scan, uint64_t state)
{
	uint64_t cframe;

	if (!load_u64(scan->reader, state + scan->layout->state_cframe, &cframe) ||
	    cframe == state + scan->layout->state_root_cframe)
		return 0;
	return cframe;
}

/* 3.13 on: the frame that the newest evaluation loop put below the others. 0: runs nothing. */
static uint64_t newest_loop(const struct state_scan *scan, uint64_t state)
{
	const struct cpython_layout *layout = scan->layout;
	uint64_t frame;
	uint8_t owner;

	if (!load_u64(scan->reader, state + layout->state_frame, &frame))
		return 0;
	for (unsigned int i = 0; frame && i < FRAMES_MAX; i++) {
		if (!load_u8(scan->reader, frame + layout->frame_owner, &owner))
			return 0;
		if (owner >= layout->frame_owner_none)
			return frame - state < STATE_BYTES_MAX ? 0 : frame;
		if (!load_u64(scan->reader, frame + layout->frame_previous, &frame))
			return 0;
	}
	return 0;
}

bool state_holds_lock(const struct state_scan *scan, uint64_t state)
{
	const struct cpython_layout *layout = scan->layout;
	uint64_t current;

	if (!layout->runtime_current_state)
		return state_is_attached(scan->reader, layout, state);
	return load_u64(scan->reader, scan->cpython->runtime + layout->runtime_current_state,
			&current) &&
	       current == state;
}

static void consider(const struct state_scan *scan, uint64_t state, struct found *found)
{
	uint64_t newest;

	if (found->attached)
		return;
	found->attached = state_holds_lock(scan, state);
	if (found->attached) {
		found->state = state;
		return;
	}
	newest = scan->layout->state_cframe ? newest_cframe(scan, state) : newest_loop(scan, state);
	if (!newest || newest >= found->lowest)
		return;
	found->state = state;
	found->lowest = newest;
}

/* A thread with several states in one scan is to be scanned for each time. */
static void note_state(struct state_notes *notes, uint32_t tid, uint64_t state)
{
	uint32_t place = tid % STATE_NOTES;

	if (notes->of[place].tid == tid && notes->of[place].scan == notes->scan)
		state = 0;
	notes->of[place].tid = tid;
	notes->of[place].scan = notes->scan;
	notes->of[place].state = state;
}

uint64_t state_noted(const struct state_notes *notes, uint32_t tid)
{
	uint32_t place = tid % STATE_NOTES;

	return notes->of[place].tid == tid ? notes->of[place].state : 0;
}

static void scan_interpreter(const struct state_scan *scan, uint64_t interpreter,
			     struct found *found)
{
	uint64_t state, native_id;

	if (!load_u64(scan->reader, interpreter + scan->layout->interpreter_first_state, &state))
		return;
	while (state && found->nr_states++ < STATES_MAX) {
		if (!load_u64(scan->reader, state + scan->layout->state_native_id, &native_id))
			return;
		if (native_id == scan->tid)
			consider(scan, state, found);
		if (scan->notes && native_id <= UINT32_MAX)
			note_state(scan->notes, (uint32_t)native_id, state);
		if (!load_u64(scan->reader, state + scan->layout->state_next, &state))
			return;
	}
}

uint64_t state_scan(const struct state_scan *scan, uint64_t candidate, bool *ret_holds_lock)
{
	struct found found = {.state = candidate, .lowest = UINT64_MAX};
	uint64_t interpreter;

	if (scan->notes)
		scan->notes->scan++;
	if (candidate)
		consider(scan, candidate, &found);
	if (!load_u64(scan->reader,
		      scan->cpython->runtime + scan->layout->runtime_first_interpreter,
		      &interpreter))
		interpreter = 0;
	for (unsigned int i = 0; interpreter && i < INTERPRETERS_MAX; i++) {
		scan_interpreter(scan, interpreter, &found);
		if (!load_u64(scan->reader, interpreter + scan->layout->interpreter_next,
			      &interpreter))
			break;
	}
	*ret_holds_lock = found.attached;
	return found.state;
}
