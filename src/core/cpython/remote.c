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

void cpython_remote_begin(struct cpython_remote *remote, pid_t pid)
{
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
		return state_scan(&scan, 0, ret_holds_lock);
	*ret_holds_lock = state_holds_lock(&scan, hint);
	return hint;
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
