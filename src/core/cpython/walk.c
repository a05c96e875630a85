/* SPDX-License-Identifier: MIT */
/* The walk in the signal handler: the era's walk with direct loads and a version's own numbers. */
#include "core/cpython/layouts.h"
#include "core/cpython/walk_311.h"
#include "core/cpython/walk_312.h"

typedef size_t walk_fn(const struct cpython *cpython, uint64_t thread_state,
		       struct cpython_frame *frames, size_t max, enum cpython_end *ret_end);

/* One copy of the era's walk for each table, so that the compiler folds the table's numbers. */
#define X(name, walk)                                                                          \
	static size_t walk_in_##name(const struct cpython *cpython, uint64_t thread_state,     \
				     struct cpython_frame *frames, size_t max,                 \
				     enum cpython_end *ret_end)                                \
	{                                                                                      \
		const struct reader reader = {.kind = READER_DIRECT};                          \
		struct walk_room room = {.frames = frames, .max = max};                        \
                                                                                               \
		*ret_end = walk(reader, &cpython_layout_##name, cpython, thread_state, &room); \
		return room.nr_frames;                                                         \
	}
CPYTHON_LAYOUTS(X)
#undef X

static size_t walk_in_none(const struct cpython *cpython, uint64_t thread_state,
			   struct cpython_frame *frames, size_t max, enum cpython_end *ret_end)
{
	(void)cpython;
	(void)thread_state;
	(void)frames;
	(void)max;
	*ret_end = CPYTHON_END_ROOT;
	return 0;
}

size_t cpython_walk(const struct cpython *cpython, uint64_t thread_state,
		    struct cpython_frame *frames, size_t max, enum cpython_end *ret_end)
{
	static walk_fn *const walks[NR_CPYTHON_LAYOUTS] = {[CPYTHON_LAYOUT_NONE] = walk_in_none,
#define X(name, walk) [CPYTHON_LAYOUT_##name] = walk_in_##name,
							   CPYTHON_LAYOUTS(X)
#undef X
	};
	uint32_t layout = thread_state ? cpython->layout : CPYTHON_LAYOUT_NONE;

	return walks[layout](cpython, thread_state, frames, max, ret_end);
}
