/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a recording's `ust/` trace: CTF 1.8, little endian, every field byte-packed.
 *
 * PACKET (all stream classes)                              bytes at
 *   header   magic u32 = 0xC1FC1FC1                            0
 *            uuid u8[16]         of the trace                  4
 *            stream_id u32       0 samples, 1 definitions, 2 waits   20
 *            stream_instance_id u64                           24
 *   context  timestamp_begin u64 ns, clock monotonic          32
 *            timestamp_end u64                                40
 *            content_size u64    bits, from the magic on      48
 *            packet_size u64     bits, equal to content_size  56
 *            packet_seq_num u64  from 0 within the stream     64
 *            events_discarded u64 cumulative in the stream    72
 *            vpid u32, vtid u32  0 in definitions and waits   80
 *            procname char[16]   the thread's name            88
 *   events                                                   104
 *
 * EVENT HEADER, as LTTng's compact one: a u32 whose low 5 bits are the id and whose high 27
 * bits are the low 27 bits of the time; or, with id 31, one byte 31, id u32, time u64. The
 * short form is written where the previous event of the packet (or timestamp_begin) is less
 * than 2^27 ns = 134 ms before.
 *
 * SAMPLES (stream class 0): one stream per slot of the recording's memory, file ust/slot_NNNN;
 * a slot is reused when its thread has ended, packets say whose they are.
 *   id 2*e    "sample:EVENT"       native u32, python u32, count u32     (16 bytes in all)
 *   id 2*e+1  "sample_wide:EVENT"  native u32, python u32, count u64
 * e is the event's index in the manifest's "events", EVENT its name; native and python are
 * nodes; count is the estimated number of the event (ns for time).
 *
 * DEFINITIONS (stream class 1): file ust/definitions. A definition is written before any packet
 * that names it; ids are unique in the recording; node parents come before their children.
 *   id 0 "code"    id u32, first_line u32, line_table_kind u8, name string, file string,
 *                  line_table_length u32, line_table u8[line_table_length]
 *   id 1 "node"    id u32, parent u32, kind u8, flags u8, owner u32, position u64
 *   id 2 "module"  id u32, start u64, end u64, file_offset u64, build_id string, path string
 *   id 3 "thread"  slot u32, pid u32, tid u32, start_ns u64, end_ns u64, cpu_ns u64,
 *                  samples u64, lost u64, overrun u64, voluntary_switches u64, name string
 *                  (written when the thread has ended, or with the recording)
 *   id 4 "process" pid u32, ppid u32, start_ns u64, recorded u8, command string, reason string
 * WAITS (stream class 2): file ust/waits, of recordings with --wall. Both carry the time at which
 * they were written.
 *   id 0 "wait"         pid u32, tid u32, native u32, python u32, start u64, duration u64,
 *                       count u64, kind u8
 *   id 1 "thread_waits" pid u32, tid u32, waits u64, waited u64, seen u64, seen_ns u64,
 *                       rejected u64
 * start and duration are the wait's own, in ns; count is the waiting time that it stands for, which
 * is more than the duration where not every wait is looked at; kind is enum wait_kind. thread_waits
 * is exact: how often the thread did not run and for how long, and what of it was looked at.
 *
 * Strings are UTF-8 without NUL; what is no valid text is written as \xNN or \uNNNN.
 *
 * The format's man page is pathprof-recording(5).
 */
#ifndef PATHPROF_CORE_EVENT_CTF_H
#define PATHPROF_CORE_EVENT_CTF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CTF_MAGIC	     0xC1FC1FC1u
#define CTF_STREAM_SAMPLES   0u
#define CTF_STREAM_DEFS	     1u
#define CTF_STREAM_WAITS     2u
#define CTF_PREFIX_BYTES     104 /* packet header and context */
#define CTF_PROCNAME_BYTES   16
#define CTF_ID_EXTENDED	     31u
#define CTF_COMPACT_RANGE_NS (1u << 27)

enum ctf_definition_id {
	CTF_DEF_CODE = 0,
	CTF_DEF_NODE = 1,
	CTF_DEF_MODULE = 2,
	CTF_DEF_THREAD = 3,
	CTF_DEF_PROCESS = 4,
};

enum ctf_wait_id {
	CTF_WAIT = 0,
	CTF_THREAD_WAITS = 1,
};

#define CTF_WAIT_BYTES	       (4 * 4 + 3 * 8 + 1) /* without the header */
#define CTF_THREAD_WAITS_BYTES (2 * 4 + 5 * 8)
#define CTF_HEADER_MAX_BYTES   13

#define CTF_SAMPLE_MAX_BYTES (13 + 16) /* extended header, wide count */

/* The packet header and context, exactly as stored. */
struct ctf_packet_prefix {
	uint32_t magic;
	uint8_t uuid[16];
	uint32_t stream_id;
	uint64_t stream_instance_id;
	uint64_t timestamp_begin;
	uint64_t timestamp_end;
	uint64_t content_bits;
	uint64_t packet_bits;
	uint64_t packet_seq_num;
	uint64_t events_discarded;
	uint32_t vpid;
	uint32_t vtid;
	char procname[CTF_PROCNAME_BYTES];
} __attribute__((packed));

_Static_assert(sizeof(struct ctf_packet_prefix) == CTF_PREFIX_BYTES, "packet prefix is stored");

/**
 * ctf_put_header - write an event header
 * @at: where to; 13 bytes must fit
 * @id: event id, below 31 for the short form
 * @time_ns: the event's time
 * @previous_ns: time of the event before it in the packet; 0 forces the long form
 *
 * Returns the number of bytes written: 4 or 13. Signal-safe.
 */
static inline size_t ctf_put_header(uint8_t *at, uint32_t id, uint64_t time_ns,
				    uint64_t previous_ns)
{
	uint32_t compact = id | (uint32_t)(time_ns << 5);

	if (id < CTF_ID_EXTENDED && time_ns - previous_ns < CTF_COMPACT_RANGE_NS) {
		memcpy(at, &compact, sizeof(compact));
		return sizeof(compact);
	}
	at[0] = (uint8_t)CTF_ID_EXTENDED;
	memcpy(at + 1, &id, sizeof(id));
	memcpy(at + 5, &time_ns, sizeof(time_ns));
	return 13;
}

/**
 * ctf_put_sample - write a sample event
 * @at: where to; CTF_SAMPLE_MAX_BYTES must fit
 * @event: index of the event in the recording
 * @count: estimated number of the event that the sample stands for
 *
 * Cost: one 16-byte store sequence in the steady state. Returns the number of bytes written.
 * Signal-safe.
 */
static inline size_t ctf_put_sample(uint8_t *at, uint32_t event, uint64_t time_ns,
				    uint64_t previous_ns, uint32_t native, uint32_t python,
				    uint64_t count)
{
	bool wide = count > UINT32_MAX;
	size_t length = ctf_put_header(at, 2 * event + wide, time_ns, previous_ns);

	memcpy(at + length, &native, sizeof(native));
	memcpy(at + length + 4, &python, sizeof(python));
	memcpy(at + length + 8, &count, wide ? 8 : 4);
	return length + 8 + (wide ? 8 : 4);
}

#endif
