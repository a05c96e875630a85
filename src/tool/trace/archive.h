/* SPDX-License-Identifier: MIT */
/* One file made of a recording, which every command reads in the recording's place. */
#ifndef PATHPROF_TOOL_TRACE_ARCHIVE_H
#define PATHPROF_TOOL_TRACE_ARCHIVE_H

#include "tool/trace/input.h"

/**
 * archive_write - pack the recording in @directory into an open file or pipe, from its beginning to
 * its end
 * Cost: about 1 us a sample. Returns 0 or a negative errno with a sentence.
 */
int archive_write(const char *directory, int fd, struct errbuf *err);

/**
 * archive_extract - write the files of an archive, byte by byte as they were, to a new directory
 * Returns 0 or a negative errno with a sentence; what was written until then stays.
 */
int archive_extract(const char *path, const char *directory, struct errbuf *err);

/** archive_unpack - input_load() of a file in an archive */
int archive_unpack(const struct input *input, const struct input_file *file, uint8_t **ret_bytes,
		   size_t *ret_length, struct errbuf *err);

#endif
