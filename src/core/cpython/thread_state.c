/* SPDX-License-Identifier: MIT */
/*
 * Which thread state is this thread's?
 *
 * 3.11: while the thread holds the interpreter lock, the runtime's current state. Afterwards the
 * value of the runtime's thread-local key (autoTSSkey), whose stack still stands. 3.11's key knows
 * one state a thread: if the thread runs a sub-interpreter with the lock released, the key still
 * names the state that called it, so that where there are several interpreters all states are
 * looked at (scan_state.h).
 *
 * 3.12 on: a thread-local variable names the state that is attached (that holds its interpreter's
 * lock, or in a free-threaded build may run); null once it is detached. Then the key, which follows
 * sub-interpreters, or from 3.15 on a second variable, names it still. Where the variables could
 * not be located, all states are looked at.
 *
 * Known limit: 3.11 notes in a state the thread that created it. A sub-interpreter's state that
 * another thread runs is taken for its creator's.
 */
#include "core/cpython/cpython.h"

#include <pthread.h>

#include "core/cpython/layouts.h"
#include "core/cpython/scan_state.h"
#include "core/cpython/thread_local.h"

static const struct reader here = {.kind = READER_DIRECT};

static uint64_t state_of_key(const struct cpython *cpython, const struct cpython_layout *layout)
{
	uint32_t initialized, key;

	if (!load_u32(here, cpython->runtime + layout->runtime_key_initialized, &initialized) ||
	    !initialized || !load_u32(here, cpython->runtime + layout->runtime_key, &key))
		return 0;
	return (uintptr_t)pthread_getspecific(key);
}

static uint64_t scan_states_here(const struct cpython *cpython, const struct cpython_layout *layout,
				 uint32_t tid, bool *ret_holds_lock)
{
	const struct state_scan scan = {
		.reader = here, .cpython = cpython, .layout = layout, .tid = tid};

	return state_scan(&scan, 0, ret_holds_lock);
}

static uint64_t state_311(const struct cpython *cpython, const struct cpython_layout *layout,
			  uint32_t tid, bool *ret_holds_lock)
{
	uint64_t current, state, interpreter, second;

	if (load_u64(here, cpython->runtime + layout->runtime_current_state, &current) && current &&
	    state_is_of_thread(here, layout, current, tid)) {
		*ret_holds_lock = true;
		return current;
	}
	state = state_of_key(cpython, layout);
	if (!load_u64(here, cpython->runtime + layout->runtime_first_interpreter, &interpreter) ||
	    !interpreter || !load_u64(here, interpreter + layout->interpreter_next, &second) ||
	    !second)
		return state;
	return state_scan(
		&(struct state_scan){
			.reader = here, .cpython = cpython, .layout = layout, .tid = tid},
		state, ret_holds_lock);
}

/* Is it a thread state? Of this thread, in all but the oddest programs; else of this runtime. */
static bool is_state(const struct cpython *cpython, const struct cpython_layout *layout,
		     uint64_t state, uint32_t tid)
{
	uint64_t interpreter, runtime;

	return state_is_of_thread(here, layout, state, tid) ||
	       (load_u64(here, state + layout->state_interpreter, &interpreter) &&
		load_u64(here, interpreter + layout->interpreter_runtime, &runtime) &&
		runtime == cpython->runtime);
}

static uint64_t last_state(const struct cpython *cpython, const struct cpython_layout *layout)
{
	uint64_t state;

	if (layout->runtime_key)
		return state_of_key(cpython, layout);
	return thread_local_load(&cpython->last_state, &state) ? state : 0;
}

/* 3.12 on. */
static uint64_t state_312(const struct cpython *cpython, const struct cpython_layout *layout,
			  uint32_t tid, bool *ret_holds_lock)
{
	uint64_t state;

	if (!cpython->current_state.known || (!layout->runtime_key && !cpython->last_state.known))
		return scan_states_here(cpython, layout, tid, ret_holds_lock);
	if (!thread_local_load(&cpython->current_state, &state))
		return 0;
	if (state && is_state(cpython, layout, state, tid)) {
		*ret_holds_lock = state_is_attached(here, layout, state);
		return state;
	}
	state = last_state(cpython, layout);
	if (!state || is_state(cpython, layout, state, tid))
		return state;
	return scan_states_here(cpython, layout, tid, ret_holds_lock);
}

uint64_t cpython_thread_state(const struct cpython *cpython, uint32_t tid, bool *ret_holds_lock)
{
	const struct cpython_layout *layout = cpython_layout_at(cpython->layout);

	*ret_holds_lock = false;
	if (!layout)
		return 0;
	return layout->runtime_current_state ? state_311(cpython, layout, tid, ret_holds_lock)
					     : state_312(cpython, layout, tid, ret_holds_lock);
}

bool cpython_runs_jitted(const struct cpython *cpython, uint64_t thread_state)
{
	const struct cpython_layout *layout = cpython_layout_at(cpython->layout);
	uint64_t executor;

	return layout && layout->state_executor &&
	       load_u64(here, thread_state + layout->state_executor, &executor) && executor;
}
