/* SPDX-License-Identifier: MIT */
/* Between columns_pack.c and columns_unpack.c. */
#ifndef PATHPROF_TOOL_TRACE_COLUMNS_PRIV_H
#define PATHPROF_TOOL_TRACE_COLUMNS_PRIV_H

#include <stdint.h>

#include "tool/trace/columns.h"

#define COLUMN_LONG_HEADER 0x80
#define VALUE_PLANES	   8
#define SAMPLE_BYTES_MIN   16

enum column_kind {		     /* stored */
		   COLUMN_ZERO = 0,  /* all bytes are 0 */
		   COLUMN_FRAME = 1, /* one zstd frame */
		   COLUMN_CODED = 2, /* coder.h */
};

/* A coded column is slow to read, so it has at least its length / COLUMN_RATIO_MAX bytes. */
#define COLUMN_RATIO_MAX 256

/* What times are told from; stored. */
struct grid {
	uint64_t tick;	 /* ns */
	uint64_t origin; /* its first point */
	uint64_t fixed;	 /* 1: points are whole ticks apart; 0: a sample is the next point */
};

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

/* Bytes that are read. */
struct source {
	const uint8_t *at, *end;
};

/** u64_put, column_put, text_put, values_put - append; 0 or -ENOMEM. text_put: takes longer */
int u64_put(struct bytes *out, uint64_t value);
int column_put(struct bytes *out, const uint8_t *column, size_t length);
int text_put(struct bytes *out, const uint8_t *text, size_t length);
int values_put(struct bytes *out, const uint64_t *values, size_t number);

/** u64_get, column_get, values_get - read as many; 0, -EBADMSG or -ENOMEM. @values are zeroed. */
int u64_get(struct source *source, uint64_t *ret_value);
int column_get(struct source *source, uint8_t *column, size_t length);
int values_get(struct source *source, uint64_t *values, size_t number);

/* columns_unpack() or definitions_unpack() */
typedef int columns_unpacker(const uint8_t *packed, size_t packed_length, uint8_t *bytes,
			     size_t length);

/** columns_check - 0 if what @out has from @start on gives @bytes, else -EBADMSG; or -ENOMEM */
int columns_check(struct bytes *out, size_t start, const uint8_t *bytes, size_t length,
		  columns_unpacker *unpack);

void columns_release(struct columns *columns);

#endif
