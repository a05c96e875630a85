/* SPDX-License-Identifier: MIT */
/* Recordings made by hand: the bytes of core/event/ctf.h, collected in memory. */
#include "make_recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/event/ctf.h"
#include "core/event/event.h"

#define PACKET_BYTES_MAX 65536
#define COLUMN_BYTES	 0 /* of a location entry: start byte and two columns */

static const uint8_t trace_uuid[16] = "pathprof-maker!";

static void *grown(void *memory, size_t bytes)
{
	memory = realloc(memory, bytes);
	if (!memory)
		abort();
	return memory;
}

static void put(struct maker_bytes *bytes, const void *from, size_t length)
{
	if (bytes->length + length > bytes->room) {
		bytes->room = 2 * (bytes->length + length) + 256;
		bytes->at = grown(bytes->at, bytes->room);
	}
	if (length)
		memcpy(bytes->at + bytes->length, from, length);
	bytes->length += length;
}

static void put_u8(struct maker_bytes *bytes, uint8_t value)
{
	put(bytes, &value, sizeof(value));
}

static void put_u32(struct maker_bytes *bytes, uint32_t value)
{
	put(bytes, &value, sizeof(value));
}

static void put_u64(struct maker_bytes *bytes, uint64_t value)
{
	put(bytes, &value, sizeof(value));
}

static void put_text(struct maker_bytes *bytes, const char *text)
{
	put(bytes, text, strlen(text) + 1);
}

static void begin_packet(struct maker_stream *stream, struct ctf_packet_prefix *prefix)
{
	prefix->magic = CTF_MAGIC;
	memcpy(prefix->uuid, trace_uuid, sizeof(trace_uuid));
	prefix->packet_seq_num = stream->packet_seq_num++;
	stream->packet_at = stream->bytes.length;
	stream->now_ns = prefix->timestamp_begin;
	stream->open = true;
	put(&stream->bytes, prefix, sizeof(*prefix));
}

static void end_packet(struct maker_stream *stream)
{
	struct ctf_packet_prefix prefix;

	if (!stream->open)
		return;
	stream->open = false;
	memcpy(&prefix, stream->bytes.at + stream->packet_at, sizeof(prefix));
	prefix.timestamp_end = stream->now_ns;
	prefix.content_bits = prefix.packet_bits = 8 * (stream->bytes.length - stream->packet_at);
	memcpy(stream->bytes.at + stream->packet_at, &prefix, sizeof(prefix));
}

struct maker *maker_new(void)
{
	struct maker *maker = grown(NULL, sizeof(*maker));

	memset(maker, 0, sizeof(*maker));
	maker_manifest(maker, true, 1, 4000000);
	return maker;
}

void maker_free(struct maker *maker)
{
	free(maker->definitions.bytes.at);
	for (size_t i = 0; i < MAKER_STREAMS_MAX; i++)
		free(maker->streams[i].bytes.at);
	free(maker->waits.bytes.at);
	free(maker->manifest);
	free(maker);
}

void maker_manifest_text(struct maker *maker, const char *text)
{
	free(maker->manifest);
	maker->manifest = grown(NULL, strlen(text) + 1);
	strcpy(maker->manifest, text);
}

void maker_manifest(struct maker *maker, bool complete, uint32_t nr_events, uint64_t period_ns)
{
	struct maker_bytes text = {0};
	char part[1024];

	put(&text, part,
	    (size_t)snprintf(
		    part, sizeof(part),
		    "{ \"version\": 1, \"pathprof\": \"0.1.0\", \"complete\": %s,\n"
		    "  \"command\": [\"python3\", \"program.py\"], \"working_directory\": "
		    "\"/srv\",\n"
		    "  \"host\": \"example\", \"kernel\": \"6.1.0\", \"cpu_model\": \"made\",\n"
		    "  \"cpus\": 2, \"clock\": { \"name\": \"monotonic\", \"uuid\": \"\","
		    " \"offset_ns\": 0 },\n"
		    "  \"start_ns\": 1000000000, \"end_ns\": %s, \"tick_ns\": 4000000,\n"
		    "  \"trigger\": \"cpu-timer\", \"root_pid\": 100, \"exit_status\": 0,\n"
		    "  \"events\": [",
		    complete ? "true" : "false", complete ? "5000000000" : "0"));
	for (uint32_t i = 0; i < nr_events; i++) {
		static const char *const names[] = {"cpu-time", "page-faults"};
		char name[32];

		snprintf(name, sizeof(name), "event-%u", i);
		put(&text, part,
		    (size_t)snprintf(part, sizeof(part),
				     "%s{ \"name\": \"%s\", \"unit\": \"%s\", \"period\": %llu,"
				     " \"count\": 0, \"trigger\": \"%s\" }",
				     i ? ", " : "", i < 2 ? names[i] : name, i ? "events" : "ns",
				     i ? 1ull : (unsigned long long)period_ns,
				     i ? "perf-sigtrap" : "cpu-timer"));
	}
	put_text(&text, "],\n  \"interpreters\": [ { \"pid\": 100, \"name\": \"CPython 3.11.2\","
			" \"path\": \"/usr/bin/python3\", \"problem\": null } ],\n"
			"  \"lost\": {}, \"degraded\": {},\n"
			"  \"overhead\": { \"handler_ns\": 1000, \"recorder_ns\": 2000 },\n"
			"  \"unseen_cpu_ns\": 0, \"notes\": [] }\n");
	maker_manifest_text(maker, (const char *)text.at);
	free(text.at);
}

/* Begin a definition: all have the time 0 but for the packet's own begin. */
static struct maker_bytes *definition(struct maker *maker, uint32_t id)
{
	struct maker_stream *stream = &maker->definitions;

	if (stream->open && stream->bytes.length - stream->packet_at > PACKET_BYTES_MAX)
		end_packet(stream);
	if (!stream->open) {
		struct ctf_packet_prefix prefix = {.stream_id = CTF_STREAM_DEFS};

		prefix.timestamp_begin = 1000000000;
		begin_packet(stream, &prefix);
	}
	put_u32(&stream->bytes, id | (uint32_t)(stream->now_ns << 5));
	return &stream->bytes;
}

void maker_code(struct maker *maker, uint32_t id, const char *name, const char *file,
		uint32_t first_line, uint32_t nr_lines)
{
	struct maker_bytes *bytes = definition(maker, CTF_DEF_CODE);

	put_u32(bytes, id);
	put_u32(bytes, first_line);
	put_u8(bytes, LINE_TABLE_CPYTHON_311);
	put_text(bytes, name);
	put_text(bytes, file);
	put_u32(bytes, 3 * nr_lines);
	for (uint32_t i = 0; i < nr_lines; i++) {
		put_u8(bytes, (uint8_t)(0x80 | (i ? 11 : 10) << 3)); /* one unit, next line */
		put_u8(bytes, COLUMN_BYTES);
		put_u8(bytes, COLUMN_BYTES);
	}
}

static struct maker_bytes *begin_node(struct maker *maker, uint32_t id, uint32_t parent)
{
	struct maker_bytes *bytes = definition(maker, CTF_DEF_NODE);

	put_u32(bytes, id);
	put_u32(bytes, parent);
	return bytes;
}

void maker_node(struct maker *maker, uint32_t id, uint32_t parent, uint8_t kind, uint32_t owner,
		uint64_t position)
{
	struct maker_bytes *bytes = begin_node(maker, id, parent);

	put_u8(bytes, kind);
	put_u8(bytes, 0);
	put_u32(bytes, owner);
	put_u64(bytes, position);
}

void maker_locked_node(struct maker *maker, uint32_t id, uint32_t parent, uint32_t code,
		       uint64_t position)
{
	struct maker_bytes *bytes = begin_node(maker, id, parent);

	put_u8(bytes, NODE_PYTHON);
	put_u8(bytes, NODE_FLAG_LOCK_HELD);
	put_u32(bytes, code);
	put_u64(bytes, position);
}

void maker_module(struct maker *maker, uint32_t id, const char *path)
{
	struct maker_bytes *bytes = definition(maker, CTF_DEF_MODULE);

	put_u32(bytes, id);
	put_u64(bytes, 0x1000);
	put_u64(bytes, 0x2000);
	put_u64(bytes, 0);
	put_text(bytes, "00");
	put_text(bytes, path);
}

void maker_thread(struct maker *maker, const struct maker_thread *thread)
{
	struct maker_bytes *bytes = definition(maker, CTF_DEF_THREAD);

	put_u32(bytes, 0);
	put_u32(bytes, thread->pid);
	put_u32(bytes, thread->tid);
	put_u64(bytes, thread->start_ns);
	put_u64(bytes, thread->end_ns);
	put_u64(bytes, thread->cpu_ns);
	put_u64(bytes, thread->samples);
	put_u64(bytes, thread->lost);
	put_u64(bytes, thread->overrun);
	put_u64(bytes, thread->voluntary_switches);
	put_text(bytes, thread->name);
}

void maker_process(struct maker *maker, uint32_t pid, uint32_t ppid, const char *command,
		   const char *reason)
{
	struct maker_bytes *bytes = definition(maker, CTF_DEF_PROCESS);

	put_u32(bytes, pid);
	put_u32(bytes, ppid);
	put_u64(bytes, 1000000000);
	put_u8(bytes, !reason[0]);
	put_text(bytes, command);
	put_text(bytes, reason);
}

void maker_begin(struct maker *maker, uint32_t slot, uint32_t pid, uint32_t tid, uint64_t begin_ns)
{
	struct ctf_packet_prefix prefix = {
		.stream_id = CTF_STREAM_SAMPLES,
		.stream_instance_id = slot,
		.timestamp_begin = begin_ns,
		.vpid = pid,
		.vtid = tid,
		.procname = "maker",
	};

	end_packet(&maker->streams[slot]);
	begin_packet(&maker->streams[slot], &prefix);
}

void maker_sample(struct maker *maker, uint32_t slot, uint32_t event, uint64_t time_ns,
		  uint32_t native, uint32_t python, uint64_t count)
{
	struct maker_stream *stream = &maker->streams[slot];
	uint8_t bytes[CTF_SAMPLE_MAX_BYTES];

	put(&stream->bytes, bytes,
	    ctf_put_sample(bytes, event, time_ns, stream->now_ns, native, python, count));
	stream->now_ns = time_ns;
}

void maker_end(struct maker *maker, uint32_t slot)
{
	end_packet(&maker->streams[slot]);
}

static struct maker_bytes *begin_wait(struct maker *maker, enum ctf_wait_id id, uint64_t time_ns)
{
	struct maker_stream *stream = &maker->waits;
	uint8_t header[CTF_HEADER_MAX_BYTES];

	if (!stream->open) {
		struct ctf_packet_prefix prefix = {.stream_id = CTF_STREAM_WAITS,
						   .timestamp_begin = time_ns};

		begin_packet(stream, &prefix);
	}
	put(&stream->bytes, header, ctf_put_header(header, id, time_ns, stream->now_ns));
	stream->now_ns = time_ns;
	return &stream->bytes;
}

void maker_wait(struct maker *maker, const struct maker_wait *wait)
{
	struct maker_bytes *bytes = begin_wait(maker, CTF_WAIT, wait->start_ns + wait->duration_ns);

	put_u32(bytes, wait->pid);
	put_u32(bytes, wait->tid);
	put_u32(bytes, 0);
	put_u32(bytes, wait->python);
	put_u64(bytes, wait->start_ns);
	put_u64(bytes, wait->duration_ns);
	put_u64(bytes, wait->count);
	put_u8(bytes, wait->kind);
}

void maker_thread_waits(struct maker *maker, const struct maker_thread_waits *waits,
			uint64_t time_ns)
{
	struct maker_bytes *bytes = begin_wait(maker, CTF_THREAD_WAITS, time_ns);

	put_u32(bytes, waits->pid);
	put_u32(bytes, waits->tid);
	put_u64(bytes, waits->waits);
	put_u64(bytes, waits->waited_ns);
	put_u64(bytes, waits->seen);
	put_u64(bytes, waits->seen_ns);
	put_u64(bytes, waits->rejected);
}

void maker_finish(struct maker *maker)
{
	end_packet(&maker->waits);
	end_packet(&maker->definitions);
	for (uint32_t i = 0; i < MAKER_STREAMS_MAX; i++)
		end_packet(&maker->streams[i]);
}

static int write_file(const char *directory, const char *name, const void *bytes, size_t length)
{
	char path[4096];
	FILE *file;

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	file = fopen(path, "we");
	if (!file)
		return -errno;
	if (length)
		fwrite(bytes, 1, length, file);
	return fclose(file) ? -errno : 0;
}

int maker_write(struct maker *maker, const char *directory)
{
	char name[4096];
	int rc;

	maker_finish(maker);
	snprintf(name, sizeof(name), "%s/ust", directory);
	if (mkdir(directory, 0777) && errno != EEXIST)
		return -errno;
	if (mkdir(name, 0777) && errno != EEXIST)
		return -errno;
	rc = write_file(directory, "manifest.json", maker->manifest, strlen(maker->manifest));
	if (!rc)
		rc = write_file(directory, "ust/definitions", maker->definitions.bytes.at,
				maker->definitions.bytes.length);
	for (uint32_t i = 0; i < MAKER_STREAMS_MAX && !rc; i++) {
		const struct maker_bytes *bytes = &maker->streams[i].bytes;

		snprintf(name, sizeof(name), "ust/slot_%04u", i);
		if (bytes->length)
			rc = write_file(directory, name, bytes->at, bytes->length);
	}
	if (!rc && maker->waits.bytes.length)
		rc = write_file(directory, "ust/waits", maker->waits.bytes.at,
				maker->waits.bytes.length);
	return rc;
}

static void put_stored(struct maker_bytes *archive, const char *name, const void *bytes,
		       size_t length)
{
	put_u32(archive, 3); /* ARCHIVE_STORED */
	put_u32(archive, (uint32_t)strlen(name));
	put_u64(archive, length);
	put_u64(archive, length);
	put_u64(archive, 0);
	put(archive, name, strlen(name));
	put(archive, bytes, length);
}

uint8_t *maker_stored(struct maker *maker, size_t *ret_length)
{
	struct maker_bytes archive = {0};
	uint64_t nr_files = 2;
	char name[32];

	maker_finish(maker);
	put(&archive, "PPROFAR1", 8);
	put_stored(&archive, "manifest.json", maker->manifest, strlen(maker->manifest));
	put_stored(&archive, "ust/definitions", maker->definitions.bytes.at,
		   maker->definitions.bytes.length);
	for (uint32_t i = 0; i < MAKER_STREAMS_MAX; i++) {
		const struct maker_bytes *bytes = &maker->streams[i].bytes;

		if (!bytes->length)
			continue;
		snprintf(name, sizeof(name), "ust/slot_%04u", i);
		put_stored(&archive, name, bytes->at, bytes->length);
		nr_files++;
	}
	put_u32(&archive, 0); /* ARCHIVE_END */
	put_u32(&archive, 0);
	put_u64(&archive, nr_files);
	put_u64(&archive, 0);
	put_u64(&archive, 0);
	*ret_length = archive.length;
	return archive.at;
}
