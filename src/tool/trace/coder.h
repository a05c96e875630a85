/* SPDX-License-Identifier: MIT */
/* A column of bytes in as few bits as their frequencies allow. */
#ifndef PATHPROF_TOOL_TRACE_CODER_H
#define PATHPROF_TOOL_TRACE_CODER_H

#include <stddef.h>
#include <stdint.h>

struct bytes;

/** coder_pack - append the column's code; 0 or -ENOMEM. Cost: about 50 ns a byte. */
int coder_pack(const uint8_t *column, size_t length, struct bytes *out);

/**
 * coder_unpack - the column again
 * Foreign bytes give a column too, if not one that was packed: none is read beyond @packed_length.
 */
void coder_unpack(const uint8_t *packed, size_t packed_length, uint8_t *column, size_t length);

#endif
