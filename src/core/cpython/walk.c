/* SPDX-License-Identifier: MIT */
/* The walk in the signal handler: the era's walk with direct loads and a version's own numbers. */
#include "core/cpython/layouts.h"
#include "core/cpython/walk_311.h"
#include "core/cpython/walk_312.h"

typedef enum cpython_end walk_fn(const struct cpython *cpython, uint64_t thread_state,
				 struct walk_room *room);

/* One copy of the era's walk for each table, so that the compiler folds the table's numbers. */
#define X(name, walk)                                                                         \
	static enum cpython_end walk_in_##name(const struct cpython *cpython,                 \
					       uint64_t thread_state, struct walk_room *room) \
	{                                                                                     \
		const struct reader reader = {.kind = READER_DIRECT};                         \
                                                                                              \
		return walk(reader, &cpython_layout_##name, cpython, thread_state, room);     \
	}
CPYTHON_LAYOUTS(X)
#undef X

static enum cpython_end walk_in_none(const struct cpython *cpython, uint64_t thread_state,
				     struct walk_room *room)
{
	(void)cpython;
	(void)thread_state;
	(void)room;
	return CPYTHON_END_ROOT;
}

size_t cpython_walk(const struct cpython *cpython, uint64_t thread_state,
		    struct cpython_frame *frames, size_t max, enum cpython_end *ret_end)
{
	static walk_fn *const walks[NR_CPYTHON_LAYOUTS] = {[CPYTHON_LAYOUT_NONE] = walk_in_none,
#define X(name, walk) [CPYTHON_LAYOUT_##name] = walk_in_##name,
							   CPYTHON_LAYOUTS(X)
#undef X
	};
	struct walk_room room = {.frames = frames, .max = max};

	*ret_end = CPYTHON_END_ROOT;
	if (thread_state)
		*ret_end = walks[cpython->layout](cpython, thread_state, &room);
	return room.nr_frames;
}
