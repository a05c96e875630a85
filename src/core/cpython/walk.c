/* SPDX-License-Identifier: MIT */
/* The walk in the signal handler: the era's walk with direct loads and a version's own numbers. */
#include "core/cpython/layout_311.h"
#include "core/cpython/walk_311.h"

size_t cpython_walk(const struct cpython *cpython, uint64_t thread_state,
		    struct cpython_frame *frames, size_t max, enum cpython_end *ret_end)
{
	const struct reader reader = {.kind = READER_DIRECT};
	struct walk_room room = {.frames = frames, .max = max};

	*ret_end = CPYTHON_END_ROOT;
	if (cpython->layout && thread_state)
		*ret_end = walk_311(reader, &cpython_layout_311, cpython, thread_state, &room);
	return room.nr_frames;
}
