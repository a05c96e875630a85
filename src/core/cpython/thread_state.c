/* SPDX-License-Identifier: MIT */
/*
 * Which thread state is this thread's?
 *
 * While the thread holds the interpreter lock, the runtime's current state. Afterwards the value of
 * the runtime's thread-local key (autoTSSkey), whose stack still stands. 3.11's key knows one state
 * a thread: if the thread runs a sub-interpreter with the lock released, the key still names the
 * state that called it. Of the thread's states the one that entered the evaluation loop last runs,
 * and that is the one with the lowest cframe, since cframes lie on the C stack; a state that runs
 * nothing points to the cframe inside itself.
 *
 * Known limit: 3.11 notes in a state the thread that created it. A sub-interpreter's state that
 * another thread runs is taken for its creator's.
 */
#include "core/cpython/cpython.h"

#include <pthread.h>

#include "core/cpython/layout.h"

#define INTERPRETERS_MAX 256  /* bound of the scan: a longer list is a cycle or a lie */
#define STATES_MAX	 4096 /* bound of the scan, over all interpreters: 10 us */

static const struct reader here = {.kind = READER_DIRECT};

struct scan {
	const struct cpython_layout *layout;
	uint32_t tid;
	uint32_t nr_states;	/* looked at */
	uint64_t state;		/* the best so far */
	uint64_t lowest_cframe; /* its cframe */
};

static bool is_of_thread(const struct cpython_layout *layout, uint64_t state, uint32_t tid)
{
	uint64_t native_id;

	return load_u64(here, state + layout->state_native_id, &native_id) && native_id == tid;
}

static uint64_t state_of_key(const struct cpython *cpython)
{
	uint32_t initialized, key;

	if (!load_u32(here, cpython->runtime + cpython->layout->runtime_key_initialized,
		      &initialized) ||
	    !initialized || !load_u32(here, cpython->runtime + cpython->layout->runtime_key, &key))
		return 0;
	return (uintptr_t)pthread_getspecific(key);
}

static void consider(struct scan *scan, uint64_t state)
{
	uint64_t cframe;

	if (!load_u64(here, state + scan->layout->state_cframe, &cframe) || !cframe ||
	    cframe == state + scan->layout->state_root_cframe || cframe >= scan->lowest_cframe)
		return;
	scan->state = state;
	scan->lowest_cframe = cframe;
}

static void scan_states(struct scan *scan, uint64_t interpreter)
{
	uint64_t state;

	if (!load_u64(here, interpreter + scan->layout->interpreter_first_state, &state))
		return;
	for (; state && scan->nr_states < STATES_MAX; scan->nr_states++) {
		if (is_of_thread(scan->layout, state, scan->tid))
			consider(scan, state);
		if (!load_u64(here, state + scan->layout->state_next, &state))
			return;
	}
}

/* Other threads change the lists meanwhile: what is read may be stale, and costs nothing else. */
static uint64_t running_state(const struct cpython *cpython, uint32_t tid, uint64_t interpreter,
			      uint64_t state_of_thread)
{
	struct scan scan = {.layout = cpython->layout,
			    .tid = tid,
			    .state = state_of_thread,
			    .lowest_cframe = UINT64_MAX};

	if (state_of_thread)
		consider(&scan, state_of_thread);
	for (unsigned int i = 0; interpreter && i < INTERPRETERS_MAX; i++) {
		scan_states(&scan, interpreter);
		if (!load_u64(here, interpreter + scan.layout->interpreter_next, &interpreter))
			break;
	}
	return scan.state;
}

uint64_t cpython_thread_state(const struct cpython *cpython, uint32_t tid, bool *ret_holds_lock)
{
	const struct cpython_layout *layout = cpython->layout;
	uint64_t current, state, interpreter, second;

	*ret_holds_lock = false;
	if (!layout)
		return 0;
	if (load_u64(here, cpython->runtime + layout->runtime_current_state, &current) && current &&
	    is_of_thread(layout, current, tid)) {
		*ret_holds_lock = true;
		return current;
	}
	state = state_of_key(cpython);
	if (!load_u64(here, cpython->runtime + layout->runtime_first_interpreter, &interpreter) ||
	    !interpreter || !load_u64(here, interpreter + layout->interpreter_next, &second) ||
	    !second)
		return state;
	return running_state(cpython, tid, interpreter, state);
}
