/* SPDX-License-Identifier: MIT */
/* What the walks of all eras share. Private to this room. */
#ifndef PATHPROF_CORE_CPYTHON_WALK_ROOM_H
#define PATHPROF_CORE_CPYTHON_WALK_ROOM_H

#include "core/base/load.h"
#include "core/base/load_blocks.h"
#include "core/cpython/cpython.h"
#include "core/cpython/layout.h"

#define WALK_INLINE	 static inline __attribute__((always_inline))
#define CODE_UNIT_BYTES	 2
#define WORD_BYTES	 8u
#define CACHE_LINE_BYTES 64
#define OWNER_THREAD	 0 /* of a frame: it lies in the thread's memory for frames */

/* Where the walk writes. */
struct walk_room {
	struct cpython_frame *frames;
	size_t max;
	size_t nr_frames;
	uint64_t root;	 /* the cframe inside the thread state */
	uint64_t before; /* the frame at which the evaluation loop before this one stands */
	bool entered;	 /* the frame that entered this evaluation loop is among the frames */
	bool torn;	 /* and it does not stand on @before */
};

/* The code object of the frames at hand. Recursion repeats it: it is checked once. */
struct walk_code {
	uint64_t address;
	uint64_t nr_positions; /* which it has; 0: it is no code object */
	bool hidden;	       /* its frames are the interpreter's own */
};

/*
 * The position of a frame's instruction, @bytes behind the one before the first. Returns false
 * where none is: rotated, an odd distance is as large as one that is too long.
 */
WALK_INLINE bool walk_position(uint64_t bytes, uint32_t *ret_position)
{
	uint64_t units = bytes >> 1 | bytes << 63;

	_Static_assert(CODE_UNIT_BYTES == 2, "one bit is rotated");
	if (units > UINT32_MAX)
		return false;
	*ret_position = (uint32_t)units;
	return true;
}

/* A hint never faults, whatever the address. */
WALK_INLINE void walk_fetch(struct reader reader, uint64_t address, unsigned int nr_lines)
{
	if (reader.kind == READER_BLOCKS) {
		load_blocks_want(reader.blocks, address);
		load_blocks_want(reader.blocks, address + nr_lines * CACHE_LINE_BYTES - 1);
	}
	if (reader.kind != READER_DIRECT)
		return;
	for (unsigned int line = 0; line < nr_lines; line++)
		__builtin_prefetch((const void *)(uintptr_t)(address + line * CACHE_LINE_BYTES));
}

/* What cpython_remote_identify() will load beside: there is no time to wait for it in a handler. */
WALK_INLINE void walk_fetch_file(struct reader reader, uint64_t code_file)
{
	uint64_t file;

	if (reader.kind == READER_BLOCKS && load_u64(reader, code_file, &file))
		walk_fetch(reader, file, 4);
}

/* Frames lie one behind the other: those of the callers in the page before, if not in this one. */
WALK_INLINE void walk_fetch_below(struct reader reader, uint64_t frame)
{
	if (reader.kind == READER_BLOCKS)
		load_blocks_want(reader.blocks, frame - LOAD_BLOCK_BYTES);
}

/* Does a chunk of the thread's frames begin with this one? */
WALK_INLINE bool walk_begins_chunk(struct reader reader, const struct cpython_layout *layout,
				   uint64_t state, uint64_t frame)
{
	uint64_t chunk;

	if (!load_u64(reader, state + layout->state_chunk, &chunk))
		return false;
	/* The newest chunk, or the one before, if a frame is being pushed that needs a new one. */
	for (unsigned int i = 0; chunk && i < 2; i++) {
		uint64_t first = chunk + layout->chunk_data;

		if (frame == first || frame == first + WORD_BYTES /* in the first chunk of all */)
			return true;
		if (!load_u64(reader, chunk + layout->chunk_previous, &chunk))
			return false;
	}
	return false;
}

#endif
