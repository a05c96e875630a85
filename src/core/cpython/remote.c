/* SPDX-License-Identifier: MIT */
/*
 * The walks and readings of all versions, once more, over another process: with the tables as data,
 * since a system call costs more than any folded number.
 */
#include "core/cpython/remote.h"

#include "core/cpython/layouts.h"
#include "core/cpython/read_code.h"
#include "core/cpython/scan_state.h"
#include "core/cpython/walk_311.h"
#include "core/cpython/walk_312.h"

static struct reader reader_of(struct cpython_remote *remote)
{
	return (struct reader){.kind = READER_BLOCKS, .blocks = &remote->blocks};
}

static struct cpython_past_look *past_look(struct cpython_remote *remote, uint64_t thread_state)
{
	return &remote->past[(thread_state >> 4 ^ thread_state >> 12) % CPYTHON_PAST_LOOKS];
}

static void remember(struct cpython_remote *remote)
{
	struct cpython_past_look *past = past_look(remote, remote->thread_state);

	past->thread_state = remote->thread_state;
	past->nr_pages = load_blocks_list(&remote->blocks, past->pages, CPYTHON_PAST_PAGES);
}

static void want_as_before(struct cpython_remote *remote, uint64_t thread_state)
{
	const struct cpython_past_look *past = past_look(remote, thread_state);

	for (size_t i = 0; past->thread_state == thread_state && i < past->nr_pages; i++)
		load_blocks_want(&remote->blocks, past->pages[i]);
}

void cpython_remote_begin(struct cpython_remote *remote, pid_t pid)
{
	if (remote->thread_state && remote->blocks.pid == pid)
		remember(remote);
	remote->thread_state = 0;
	load_blocks_begin(&remote->blocks, pid);
}

static bool has_one_interpreter(struct cpython_remote *remote, const struct state_scan *scan)
{
	const struct cpython_layout *layout = scan->layout;
	uint64_t first, second;

	if (!load_u64(scan->reader, scan->cpython->runtime + layout->runtime_first_interpreter,
		      &first) ||
	    !first)
		return false;
	remote->interpreter = first;
	return load_u64(scan->reader, first + layout->interpreter_next, &second) && !second;
}

/* Is the state that ran on the thread before the only one that can? All that is read for it lies
 * where it did before: one call. */
static bool still_runs(struct cpython_remote *remote, const struct state_scan *scan, uint64_t state)
{
	const struct cpython_layout *layout = scan->layout;

	want_as_before(remote, state);
	load_blocks_want(&remote->blocks,
			 scan->cpython->runtime + layout->runtime_first_interpreter);
	load_blocks_want(&remote->blocks, remote->interpreter + layout->interpreter_next);
	load_blocks_want(&remote->blocks, state + layout->state_frame);
	return state_is_of_thread(scan->reader, layout, state, scan->tid) &&
	       has_one_interpreter(remote, scan);
}

uint64_t cpython_remote_thread_state(struct cpython_remote *remote, const struct cpython *cpython,
				     uint32_t tid, uint64_t hint, bool *ret_holds_lock)
{
	const struct state_scan scan = {.reader = reader_of(remote),
					.cpython = cpython,
					.layout = cpython_layout_at(cpython->layout),
					.tid = tid,
					.notes = &remote->notes};

	*ret_holds_lock = false;
	if (!scan.layout)
		return 0;
	if (!hint)
		hint = state_noted(&remote->notes, tid);
	if (!hint || !still_runs(remote, &scan, hint))
		return remote->thread_state = state_scan(&scan, 0, ret_holds_lock);
	*ret_holds_lock = state_holds_lock(&scan, hint);
	return remote->thread_state = hint;
}

/*
 * A thread parks on a semaphore of its own, in an entry on its stack: {argument, address that it
 * waits on, semaphore, ..}, the same in all versions that have it. That address is the thread
 * state's word that says whether it is attached, where a stopped world let it not attach.
 */
static bool parks_for_the_world(struct reader reader, const struct cpython_layout *layout,
				uint64_t thread_state, uint64_t futex)
{
	uint64_t address;

	return layout->free_threaded && load_u64(reader, futex - sizeof(address), &address) &&
	       address == thread_state + layout->state_attached;
}

bool cpython_remote_waits_for_lock(struct cpython_remote *remote, const struct cpython *cpython,
				   uint64_t thread_state, uint64_t futex)
{
	const struct cpython_layout *layout = cpython_layout_at(cpython->layout);
	struct reader reader = reader_of(remote);
	uint64_t interpreter, lock;

	if (!layout || !layout->interpreter_lock_bytes)
		return false;
	if (parks_for_the_world(reader, layout, thread_state, futex))
		return true;
	lock = layout->interpreter_lock;
	if (!lock && !load_u64(reader, cpython->runtime + layout->debug_interpreter_lock, &lock))
		return false;
	return load_u64(reader, thread_state + layout->state_interpreter, &interpreter) &&
	       futex - (interpreter + lock) < layout->interpreter_lock_bytes;
}

void cpython_remote_walk(struct cpython_remote *remote, const struct cpython *cpython,
			 uint64_t thread_state, struct cpython_remote_stack *stack)
{
	const struct cpython_layout *layout = cpython_layout_at(cpython->layout);
	struct walk_room room = {.frames = stack->frames, .max = stack->max};
	struct reader reader = {.kind = READER_BLOCKS, .blocks = &remote->blocks};

	stack->end = CPYTHON_END_ROOT;
	if (layout && thread_state)
		stack->end = layout->frame_is_entry
				     ? walk_311(reader, layout, cpython, thread_state, &room)
				     : walk_312(reader, layout, cpython, thread_state, &room);
	stack->nr_frames = room.nr_frames;
}

uint64_t cpython_remote_identify(struct cpython_remote *remote, const struct cpython *cpython,
				 uint64_t code_address, struct cpython_file_memo *file_memo)
{
	const struct code_reading in = {reader_of(remote), cpython_layout_at(cpython->layout),
					cpython};

	return in.layout ? identify_code(&in, code_address, file_memo) : 0;
}

bool cpython_remote_read_code(struct cpython_remote *remote, const struct cpython *cpython,
			      uint64_t code_address, struct cpython_code *ret_code)
{
	const struct code_reading in = {reader_of(remote), cpython_layout_at(cpython->layout),
					cpython};

	return in.layout && read_code(&in, code_address, ret_code);
}

bool cpython_remote_copy(struct cpython_remote *remote, uint64_t address, void *to, size_t length)
{
	return load_from_blocks(&remote->blocks, address, to, length);
}
