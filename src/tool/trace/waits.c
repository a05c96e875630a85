/* SPDX-License-Identifier: MIT */
/*
 * ust/waits: a sample for each wait, behind the samples of the streams, and what is exact of each
 * thread. Checked here as in samples.c: an event lies inside its packet, a node in the table.
 */
#include <errno.h>

#include "tool/trace/trace_priv.h"

struct wait_stream {
	struct reading *reading;
	struct packets packets;
	uint64_t nr_bad, nr_unknown;
};

/* A field, at @at, which goes on. */
static uint64_t take(const uint8_t **at, size_t bytes)
{
	uint64_t value = 0;

	memcpy(&value, *at, bytes);
	*at += bytes;
	return value;
}

static enum sample_state state_of(uint64_t kind)
{
	return kind == WAIT_LOCK       ? STATE_LOCK
	       : kind == WAIT_RUNNABLE ? STATE_RUNNABLE
	       : kind == WAIT_UNSEEN   ? STATE_UNSEEN
				       : STATE_WAITING;
}

/* The thread that waited from @start to @end. */
static int find_thread(struct reading *reading, const uint8_t **at, uint64_t start, uint64_t end,
		       uint32_t *ret_thread)
{
	struct ctf_packet_prefix prefix = {.timestamp_begin = start, .timestamp_end = end};

	prefix.vpid = (uint32_t)take(at, 4);
	prefix.vtid = (uint32_t)take(at, 4);
	return threads_of_wait(reading, &prefix, ret_thread);
}

static uint32_t known_node(const struct trace *trace, uint64_t node)
{
	return node < trace->nr_nodes ? (uint32_t)node : (uint32_t)trace->nr_nodes - 1;
}

static int read_wait(struct wait_stream *stream, const uint8_t *at)
{
	struct trace *trace = stream->reading->trace;
	struct trace_sample *sample = &trace->samples[trace->nr_samples];
	const uint8_t *times = at + 16, *ids = at;
	uint64_t start = take(&times, 8), duration = take(&times, 8);
	uint64_t end = start + duration < start ? UINT64_MAX : start + duration;
	uint64_t count;
	uint32_t thread;

	if (find_thread(stream->reading, &ids, start, end, &thread))
		return -ENOMEM;
	sample->thread = thread;
	sample->native = known_node(trace, take(&ids, 4));
	sample->python = known_node(trace, take(&ids, 4));
	sample->time_ns = start;
	sample->event = trace->wall.event;
	count = take(&times, 8);
	sample->count = (count < SAMPLE_COUNT_MAX ? count : SAMPLE_COUNT_MAX) & SAMPLE_COUNT_MAX;
	sample->state = (uint8_t)state_of(take(&times, 1));
	stream->nr_unknown +=
		!trace->nodes[sample->native].defined || !trace->nodes[sample->python].defined;
	trace->nr_samples++;
	trace->nr_waits++;
	return 0;
}

/* Of a leader: one record however many images. Of a thread number that was used again: the last. */
static int read_thread(struct wait_stream *stream, const uint8_t *at)
{
	uint64_t now = stream->packets.now_ns;
	struct trace_thread *of;
	uint32_t thread;

	if (find_thread(stream->reading, &at, now, now, &thread))
		return -ENOMEM;
	of = &stream->reading->trace->threads[thread];
	of->waits = take(&at, 8);
	of->waited_ns = take(&at, 8);
	of->waits_seen = take(&at, 8);
	of->waits_seen_ns = take(&at, 8);
	return 0;
}

static int read_packet(struct wait_stream *stream)
{
	struct packets *packets = &stream->packets;
	uint32_t id;
	int rc = 0;

	while (!rc && packets_event(packets, &id)) {
		size_t bytes = id == CTF_WAIT ? CTF_WAIT_BYTES : CTF_THREAD_WAITS_BYTES;
		const uint8_t *at = packets->bytes + packets->at;

		if (id > CTF_THREAD_WAITS || packets->end - packets->at < bytes) {
			stream->nr_bad += !packets->damage || id > CTF_THREAD_WAITS;
			packets->at = packets->end;
			break;
		}
		packets->at += bytes;
		rc = id == CTF_WAIT ? read_wait(stream, at) : read_thread(stream, at);
	}
	stream->nr_bad += packets->at != packets->end && !packets->damage;
	return rc;
}

static void report(struct wait_stream *stream, const char *name, uint64_t missing)
{
	struct reading *reading = stream->reading;

	if (missing)
		reading_problem(reading, "%s: %llu packets are missing", name,
				(unsigned long long)missing);
	if (stream->nr_bad)
		reading_problem(reading, "%s: %llu packets are damaged and were read in part", name,
				(unsigned long long)stream->nr_bad);
	if (stream->nr_unknown)
		reading_problem(reading, "%s: %llu waits have a stack without a definition", name,
				(unsigned long long)stream->nr_unknown);
	if (stream->packets.damage)
		reading_problem(reading, "%s: %s; %zu of %zu bytes were read", name,
				stream->packets.damage, stream->packets.next,
				stream->packets.length);
}

int waits_read(struct reading *reading, const char *name, const uint8_t *bytes, size_t length)
{
	struct wait_stream stream = {.reading = reading};
	uint64_t missing = 0;
	int rc = 0;

	packets_init(&stream.packets, bytes, length);
	while (!rc && packets_next(&stream.packets, CTF_STREAM_WAITS)) {
		missing += stream.packets.missing;
		rc = read_packet(&stream);
	}
	if (!rc)
		report(&stream, name, missing);
	return rc;
}
