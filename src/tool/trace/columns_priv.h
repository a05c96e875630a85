/* SPDX-License-Identifier: MIT */
/* Between columns_pack.c and columns_unpack.c. */
#ifndef PATHPROF_TOOL_TRACE_COLUMNS_PRIV_H
#define PATHPROF_TOOL_TRACE_COLUMNS_PRIV_H

#include <stdint.h>

#define COLUMN_LONG_HEADER 0x80
#define VALUE_PLANES	   8
#define SHIFT_MAX	   16
#define SAMPLE_BYTES_MIN   16

/* A stream taken apart. */
struct columns {
	uint64_t nr_samples, nr_packets;
	uint8_t *prefixes;
	uint8_t *ids; /* event id | COLUMN_LONG_HEADER */
	uint64_t *times, *natives, *pythons, *counts;
};

static inline uint64_t zigzag(uint64_t value)
{
	return value << 1 ^ (value >> 63 ? UINT64_MAX : 0);
}

static inline uint64_t unzigzag(uint64_t value)
{
	return value >> 1 ^ (value & 1 ? UINT64_MAX : 0);
}

void columns_release(struct columns *columns);

#endif
