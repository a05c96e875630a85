/* SPDX-License-Identifier: MIT */
/*
 * ust/slot_NNNN: the samples. Checked at this door: that an event lies inside its packet, and that
 * it is of an event that the manifest names. A node beyond the table becomes the table's last
 * node, "[unknown]", so that who reads samples may index by node.
 * Cost: about 5 ns a sample; no allocation per sample.
 */
#include "tool/trace/trace_priv.h"

#include <errno.h>

struct stream {
	struct reading *reading;
	struct packets packets;
	uint32_t thread;     /* of this packet */
	uint64_t nr_bad;     /* packets with an event that cannot be */
	uint64_t nr_unknown; /* samples whose node has no definition */
};

/* Read the samples of one packet into the trace, which has room for as many as fit the file. */
static void read_packet(struct stream *stream)
{
	struct packets *packets = &stream->packets;
	struct trace *trace = stream->reading->trace;
	uint32_t nr_ids = 2 * (uint32_t)trace->nr_events;
	uint32_t last_node = (uint32_t)trace->nr_nodes - 1;
	struct trace_sample *sample = trace->samples + trace->nr_samples;
	const struct trace_sample *first = sample;
	uint64_t count;
	uint32_t id;

	while (packets_event(packets, &id)) {
		size_t bytes = id & 1 ? 16 : 12;

		if (id >= nr_ids || packets->end - packets->at < bytes) {
			stream->nr_bad += !packets->damage || id >= nr_ids;
			packets->at = packets->end;
			break;
		}
		memcpy(&sample->native, packets->bytes + packets->at, 4);
		memcpy(&sample->python, packets->bytes + packets->at + 4, 4);
		count = 0;
		memcpy(&count, packets->bytes + packets->at + 8, bytes - 8);
		sample->count =
			(count < SAMPLE_COUNT_MAX ? count : SAMPLE_COUNT_MAX) & SAMPLE_COUNT_MAX;
		packets->at += bytes;
		sample->time_ns = packets->now_ns;
		sample->thread = stream->thread;
		sample->event = id >> 1;
		sample->state = STATE_RUNNING;
		sample->native = sample->native > last_node ? last_node : sample->native;
		sample->python = sample->python > last_node ? last_node : sample->python;
		if (!trace->has_no_lock &&
		    (trace->only_locked ||
		     trace->nodes[sample->python].flags & NODE_FLAG_LOCK_HELD)) {
			sample->state = STATE_LOCKED;
			trace->knows_lock = true;
		}
		stream->nr_unknown += !trace->nodes[sample->native].defined ||
				      !trace->nodes[sample->python].defined;
		sample++;
	}
	stream->nr_bad += packets->at != packets->end && !packets->damage;
	trace->threads[stream->thread].samples += (uint64_t)(sample - first);
	trace->nr_samples += (size_t)(sample - first);
}

static void report(struct stream *stream, const char *name, uint64_t missing)
{
	struct packets *packets = &stream->packets;
	struct reading *reading = stream->reading;

	if (missing)
		reading_problem(reading, "%s: %llu packets are missing", name,
				(unsigned long long)missing);
	if (stream->nr_bad)
		reading_problem(reading, "%s: %llu packets are damaged and were read in part", name,
				(unsigned long long)stream->nr_bad);
	if (stream->nr_unknown)
		reading_problem(reading, "%s: %llu samples have a stack without a definition", name,
				(unsigned long long)stream->nr_unknown);
	if (packets->damage)
		reading_problem(reading, "%s: %s; %zu of %zu bytes were read", name,
				packets->damage, packets->next, packets->length);
}

int samples_read(struct reading *reading, const char *name, const uint8_t *bytes, size_t length)
{
	struct stream stream = {.reading = reading};
	struct packets *packets = &stream.packets;
	uint64_t missing = 0, discarded = 0;

	packets_init(packets, bytes, length);
	while (packets_next(packets, CTF_STREAM_SAMPLES)) {
		missing += packets->missing;
		if (threads_of_packet(reading, &packets->prefix, &stream.thread))
			return -ENOMEM;
		read_packet(&stream);
		if (packets->now_ns > reading->last_ns)
			reading->last_ns = packets->now_ns;
		discarded = packets->prefix.events_discarded;
	}
	reading->discarded += discarded;
	report(&stream, name, missing);
	return 0;
}
