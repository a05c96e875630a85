/* SPDX-License-Identifier: MIT */
/* The text of a source file as lines, for annotating. */
#ifndef PATHPROF_TOOL_RENDER_SOURCE_FILE_H
#define PATHPROF_TOOL_RENDER_SOURCE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct source_file {
	char *text;   /* lines end with zeros instead of newlines; tabs are blanks */
	char **lines; /* lines[0] is line 1 */
	size_t nr_lines;
	int64_t modified_ns; /* of CLOCK_REALTIME */
};

/**
 * source_file_load - read a file; a relative path is taken from @directory, which may be NULL
 * Returns 0 or a negative errno; -EINVAL: no regular file; -EFBIG: too large for a source.
 */
int source_file_load(const char *directory, const char *path, struct source_file *ret_file);
void source_file_release(struct source_file *file);

#endif
