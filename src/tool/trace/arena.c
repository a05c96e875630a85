/* SPDX-License-Identifier: MIT */
/* Memory that lives as long as an opened trace: blocks of 64 KiB, or one of its own for more. */
#include "tool/trace/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)64 << 10)

struct arena_block {
	struct arena_block *older;
	size_t bytes; /* of `data` */
	_Alignas(max_align_t) unsigned char data[];
};

void *arena_take(struct arena *arena, size_t bytes)
{
	size_t align = _Alignof(max_align_t);
	struct arena_block *block;
	size_t size;

	if (bytes > SIZE_MAX / 2)
		return NULL;
	bytes = (bytes + align - 1) / align * align;
	if (!arena->blocks || bytes > arena->left) {
		size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
		block = calloc(1, sizeof(*block) + size);
		if (!block)
			return NULL;
		block->older = arena->blocks;
		block->bytes = size;
		arena->blocks = block;
		arena->left = size;
	}
	block = arena->blocks;
	arena->left -= bytes;
	return block->data + (block->bytes - arena->left - bytes);
}

char *arena_copy(struct arena *arena, const char *text, size_t length)
{
	char *copy = arena_take(arena, length + 1);

	if (copy && length)
		memcpy(copy, text, length);
	return copy;
}

void arena_release(struct arena *arena)
{
	struct arena_block *block = arena->blocks;

	while (block) {
		struct arena_block *older = block->older;

		free(block);
		block = older;
	}
	*arena = (struct arena){0};
}
