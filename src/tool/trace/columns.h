/* SPDX-License-Identifier: MIT */
/*
 * A stream of samples as columns, for the archive: byte by byte the same when unpacked.
 *
 * A sample's 16 bytes compress badly as they stand, since each field has its own statistics. So:
 *
 *   u64 nr_samples, u64 nr_packets
 *   column: the packets' prefixes, as they are
 *   column: per sample a byte, its event id; 0x80: the long header was used
 *   times:  u64 tick, u64 shift; per sample a number of ticks and what is left, as values below
 *   native, python, count: each a dictionary
 *
 * Times: samples of a timer fall near a grid. A grid point p goes along, and
 *   time = p + steps * tick + rest;  p = p + steps * tick + (rest >> shift)
 * With shift 0 this is the distance to the last sample; with 4 the grid is smoothed, which saves
 * half a bit a sample where samples jitter around the ticks. `steps` is nearly always 1; of
 * `rest` remains the jitter, 15 bits of the 27 to 64 of a time, and no method can take that away.
 *
 * Dictionary: u64 number of distinct values; these, most frequent first, as differences; per sample
 * the rank. Values: zigzag (sign in bit 0), and byte plane by byte plane, lowest first, each a
 * column.
 *
 * Column: u64 packed length, then one zstd frame; length 0: all bytes are 0.
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
 * columns_pack - append the columns of a sample stream
 * Returns 0, -EBADMSG where the stream is none that would come back as it is, or -ENOMEM.
 */
int columns_pack(const uint8_t *stream, size_t length, struct bytes *out);

/**
 * columns_unpack - the stream again
 * @stream: room for @length bytes, all of which are written
 * Memory: about four times @length meanwhile. Returns 0, -EBADMSG or -ENOMEM.
 */
int columns_unpack(const uint8_t *packed, size_t packed_length, uint8_t *stream, size_t length);

#endif
