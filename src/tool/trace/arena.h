/* SPDX-License-Identifier: MIT */
/* Memory that lives as long as an opened trace and is freed in one go. */
#ifndef PATHPROF_TOOL_TRACE_ARENA_H
#define PATHPROF_TOOL_TRACE_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
	struct arena_block *blocks; /* newest first */
	size_t left;		    /* bytes free in the newest */
};

/** arena_take - zeroed memory, aligned for any type; NULL: out of memory */
void *arena_take(struct arena *arena, size_t bytes);

/** arena_copy - a text of @length bytes, copied and terminated; NULL: out of memory */
char *arena_copy(struct arena *arena, const char *text, size_t length);

/** arena_release - free all of it */
void arena_release(struct arena *arena);

#endif
