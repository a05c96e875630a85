/* SPDX-License-Identifier: MIT */
/*
 * A stream of samples as columns, for the archive: byte by byte the same when unpacked.
 *
 * A sample's 16 bytes compress badly as they stand, since each field has its own statistics. So:
 *
 *   u64 nr_samples, u64 nr_packets
 *   column: the packets' prefixes, as they are
 *   column: per sample a byte, its event id; 0x80: the long header was used
 *   times:  u64 tick, u64 origin, u64 fixed; per sample a number of ticks and what is left, as
 *           values below
 *   native, python, count: each a dictionary
 *
 * Times: a point p goes along, which begins at `origin`, and
 *   time = p + (steps + 1) * tick + rest
 * With `fixed` 0 the next p is this time: all is told from the sample before, which suits clocks,
 * whose grid shifts whenever the thread leaves the CPU. With `fixed` 1 the next p is this one's
 * whole number of ticks on, which suits CPU timers: the scheduler's ticks lie on one grid, and the
 * distance of two samples has the jitter of both. Packing tries both, with the usual count and the
 * median distance for a tick. `steps` is mostly 0; of `rest` remains the jitter, 14 to 17 bits, and
 * no method can take that away.
 *
 * Dictionary: u64 number of distinct values; these, most frequent first, as differences; per sample
 * the rank. Values: differences are zigzag (sign in bit 0); then byte plane by byte plane, lowest
 * first, each a column.
 *
 * Column: u8 kind; but for kind 0, all bytes are 0: u64 packed length and one zstd frame (1), or
 * where it is smaller the code of coder.h (2).
 */
#ifndef PATHPROF_TOOL_TRACE_COLUMNS_H
#define PATHPROF_TOOL_TRACE_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that grow. */
struct bytes {
	uint8_t *at;
	size_t length, room;
};

/** bytes_put - append; 0 or -ENOMEM. The holder frees `at`. */
int bytes_put(struct bytes *bytes, const void *from, size_t length);

/** bytes_put_frame - append @length bytes as one zstd frame; 0 or a negative errno */
int bytes_put_frame(struct bytes *bytes, const void *from, size_t length);

/** frame_unpack - one zstd frame that must give exactly @length bytes; 0 or -EBADMSG */
int frame_unpack(const uint8_t *packed, size_t packed_length, void *to, size_t length);

/**
 * columns_pack, definitions_pack - append the columns of a sample stream, of definitions
 * Return 0, -EBADMSG where the bytes are none that would come back as they are, or
 * -ENOMEM.
 */
int columns_pack(const uint8_t *stream, size_t length, struct bytes *out);
int definitions_pack(const uint8_t *bytes, size_t length, struct bytes *out);

/**
 * columns_unpack, definitions_unpack - the bytes again
 * @stream: room for @length bytes, all of which are written
 * Memory: about four times @length meanwhile. Return 0, -EBADMSG or -ENOMEM.
 */
int columns_unpack(const uint8_t *packed, size_t packed_length, uint8_t *stream, size_t length);
int definitions_unpack(const uint8_t *packed, size_t packed_length, uint8_t *bytes, size_t length);

#endif
