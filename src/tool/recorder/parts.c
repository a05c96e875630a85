/* SPDX-License-Identifier: MIT */
/*
 * The events of a packet in memory: how far whole ones go, how many they are, the last one's time.
 *
 * A packet that is written before it is full is written in parts, each a CTF packet of its own. An
 * event's short header has 27 bits of its time, which mean nothing but after the event before it:
 * a part therefore begins at the time of the last event of the part before. That time is read off
 * the events; the packet's end_ns may be of a later one.
 *
 * The program can write here: no size is taken from anywhere but an event's id, and an id that the
 * recording has not ends the walk.
 */
#include "tool/recorder/recorder_types.h"

#include <string.h>

#include "core/event/ctf.h"

#define LONG_HEADER_BYTES 13

/* The header at @at; returns its length, or 0: it is not whole. */
static uint32_t read_header(const uint8_t *at, uint32_t left, uint32_t *ret_id, uint64_t *time_ns)
{
	uint32_t compact;

	if (left < sizeof(compact))
		return 0;
	memcpy(&compact, at, sizeof(compact));
	if ((compact & CTF_ID_EXTENDED) != CTF_ID_EXTENDED) {
		*ret_id = compact & CTF_ID_EXTENDED;
		*time_ns += ((compact >> 5) - (uint32_t)*time_ns) & (CTF_COMPACT_RANGE_NS - 1);
		return sizeof(compact);
	}
	if (left < LONG_HEADER_BYTES)
		return 0;
	memcpy(ret_id, at + 1, sizeof(*ret_id));
	memcpy(time_ns, at + 5, sizeof(*time_ns));
	return LONG_HEADER_BYTES;
}

void part_measure(const uint8_t *ctf, uint32_t to, size_t nr_events, struct part *part)
{
	/* Each turn takes 16 bytes or more of the packet. */
	while (part->end < to) {
		uint64_t time_ns = part->last_ns;
		uint32_t id, header, body;

		header = read_header(ctf + part->end, to - part->end, &id, &time_ns);
		if (!header || id >= 2 * nr_events)
			return;
		body = id & 1 ? 16 : 12;
		if (body > to - part->end - header)
			return;
		part->end += header + body;
		part->last_ns = time_ns;
		part->samples++;
	}
}
