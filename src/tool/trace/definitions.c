/* SPDX-License-Identifier: MIT */
/*
 * ust/definitions. Checked at this door, of each definition: that it lies inside its packet,
 * that its strings end there, that its id is not 0, not defined before and not beyond what a file
 * of this size can define, that a node's parent has a smaller id, and that texts are text.
 * References between definitions are checked when all are there (nodes.c).
 */
#include "tool/trace/trace_priv.h"

#include <errno.h>
#include <stdlib.h>

#define NODE_BYTES 26 /* of a node's event at least; ids are given one by one, few stay unused */

/* A window on an event's fields; once too short, everything reads as 0 and `bad` stays set. */
struct cursor {
	uint8_t *at, *end;
	bool bad;
};

static uint64_t take(struct cursor *cursor, size_t bytes)
{
	uint64_t value = 0;

	if ((size_t)(cursor->end - cursor->at) < bytes) {
		cursor->bad = true;
		return 0;
	}
	memcpy(&value, cursor->at, bytes);
	cursor->at += bytes;
	return value;
}

static uint32_t take_u32(struct cursor *cursor)
{
	return (uint32_t)take(cursor, 4);
}

static uint8_t take_u8(struct cursor *cursor)
{
	return (uint8_t)take(cursor, 1);
}

static const char *take_text(struct cursor *cursor)
{
	char *text = (char *)cursor->at;
	uint8_t *nul = memchr(cursor->at, 0, (size_t)(cursor->end - cursor->at));

	if (!nul) {
		cursor->bad = true;
		return "";
	}
	cursor->at = nul + 1;
	text_clean(text, strlen(text), false);
	return text;
}

static uint8_t *take_bytes(struct cursor *cursor, size_t length)
{
	uint8_t *bytes = cursor->at;

	if ((size_t)(cursor->end - cursor->at) < length) {
		cursor->bad = true;
		return bytes;
	}
	cursor->at += length;
	return bytes;
}

/* Each read_... returns 0, -EBADMSG for a definition that is no good, or -ENOMEM. */

static bool id_fits(const struct reading *reading, uint32_t id)
{
	return id && id < reading->id_limit;
}

static int read_code(struct reading *reading, struct cursor *cursor)
{
	struct raw_code code = {.defined = 1};
	uint32_t id = take_u32(cursor);

	code.first_line = take_u32(cursor);
	code.line_table_kind = take_u8(cursor);
	code.name = take_text(cursor);
	code.file = take_text(cursor);
	code.line_table_length = take_u32(cursor);
	code.line_table = take_bytes(cursor, code.line_table_length);
	if (cursor->bad || !id_fits(reading, id))
		return -EBADMSG;
	if (array_fit((void **)&reading->codes, &reading->room_codes, id, sizeof(code)))
		return -ENOMEM;
	if (reading->codes[id].defined)
		return -EBADMSG;
	reading->codes[id] = code;
	if (id >= reading->nr_codes)
		reading->nr_codes = id + 1;
	return 0;
}

static int read_node(struct reading *reading, struct cursor *cursor)
{
	struct raw_node node = {.defined = 1};
	uint32_t id = take_u32(cursor);

	node.parent = take_u32(cursor);
	node.kind = take_u8(cursor);
	node.flags = take_u8(cursor);
	node.owner = take_u32(cursor);
	node.position = take(cursor, 8);
	if (cursor->bad || !id_fits(reading, id) || node.parent >= id)
		return -EBADMSG;
	if (array_fit((void **)&reading->nodes, &reading->room_nodes, id, sizeof(node)))
		return -ENOMEM;
	if (reading->nodes[id].defined)
		return -EBADMSG;
	reading->nodes[id] = node;
	if (id >= reading->nr_nodes)
		reading->nr_nodes = id + 1;
	return 0;
}

static int read_module(struct reading *reading, struct cursor *cursor)
{
	uint32_t id = take_u32(cursor);
	const char *path;

	take(cursor, 8); /* start, end, file_offset: nothing is resolved by address yet */
	take(cursor, 8);
	take(cursor, 8);
	take_text(cursor); /* build_id */
	path = take_text(cursor);
	if (cursor->bad || id >= reading->id_limit)
		return -EBADMSG;
	if (array_fit((void **)&reading->modules, &reading->room_modules, id,
		      sizeof(*reading->modules)))
		return -ENOMEM;
	if (reading->modules[id].path)
		return -EBADMSG;
	reading->modules[id].path = path;
	if (id >= reading->nr_modules)
		reading->nr_modules = id + 1;
	return 0;
}

static int read_thread(struct reading *reading, struct cursor *cursor)
{
	struct trace *trace = reading->trace;
	struct trace_thread thread = {0};

	take_u32(cursor); /* slot */
	thread.pid = take_u32(cursor);
	thread.tid = take_u32(cursor);
	thread.start_ns = take(cursor, 8);
	thread.end_ns = take(cursor, 8);
	thread.cpu_ns = take(cursor, 8);
	thread.samples = take(cursor, 8);
	thread.lost = take(cursor, 8);
	thread.overrun = take(cursor, 8);
	thread.voluntary_switches = take(cursor, 8);
	thread.name = take_text(cursor);
	if (cursor->bad)
		return -EBADMSG;
	if (array_fit((void **)&trace->threads, &reading->room_threads, trace->nr_threads,
		      sizeof(thread)))
		return -ENOMEM;
	trace->threads[trace->nr_threads++] = thread;
	return 0;
}

static int read_process(struct reading *reading, struct cursor *cursor)
{
	struct trace *trace = reading->trace;
	struct trace_process process = {0};

	process.pid = take_u32(cursor);
	process.ppid = take_u32(cursor);
	take(cursor, 8); /* start_ns */
	process.recorded = take_u8(cursor) != 0;
	process.command = take_text(cursor);
	process.reason = take_text(cursor);
	if (cursor->bad)
		return -EBADMSG;
	if (!process.reason[0])
		process.reason = NULL;
	if (array_fit((void **)&trace->processes, &reading->room_processes, trace->nr_processes,
		      sizeof(process)))
		return -ENOMEM;
	trace->processes[trace->nr_processes++] = process;
	return 0;
}

static int read_definition(struct reading *reading, uint32_t id, struct cursor *cursor)
{
	switch (id) {
	case CTF_DEF_CODE:
		return read_code(reading, cursor);
	case CTF_DEF_NODE:
		return read_node(reading, cursor);
	case CTF_DEF_MODULE:
		return read_module(reading, cursor);
	case CTF_DEF_THREAD:
		return read_thread(reading, cursor);
	case CTF_DEF_PROCESS:
		return read_process(reading, cursor);
	default:
		cursor->bad = true; /* of unknown length: the rest of the packet is lost */
		return -EBADMSG;
	}
}

/* Read the definitions of one packet; counts what is no good. */
static int read_packet(struct reading *reading, struct packets *packets, uint8_t *bytes,
		       uint64_t *nr_bad)
{
	uint32_t id;

	while (packets_event(packets, &id)) {
		struct cursor cursor = {.at = bytes + packets->at, .end = bytes + packets->end};
		int rc = read_definition(reading, id, &cursor);

		if (rc == -ENOMEM)
			return rc;
		if (rc)
			++*nr_bad;
		if (cursor.bad)
			return 0;
		packets->at = (size_t)(cursor.at - bytes);
	}
	if (packets->at != packets->end && !packets->damage)
		++*nr_bad;
	return 0;
}

int definitions_read(struct reading *reading, uint8_t *bytes, size_t length, struct errbuf *err)
{
	uint64_t nr_bad = 0, missing = 0;
	struct packets packets;

	reading->id_limit = (uint32_t)(length / NODE_BYTES * 4 > UINT32_MAX / 2
					       ? UINT32_MAX / 2
					       : length / NODE_BYTES * 4 + 4096);
	packets_init(&packets, bytes, length);
	while (packets_next(&packets, CTF_STREAM_DEFS)) {
		missing += packets.missing;
		if (read_packet(reading, &packets, bytes, &nr_bad))
			return errbuf_set(err, -ENOMEM, "Reading definitions: out of memory");
	}
	if (missing)
		reading_problem(reading, "ust/definitions: %llu packets are missing",
				(unsigned long long)missing);
	if (nr_bad)
		reading_problem(reading, "ust/definitions: %llu definitions are damaged",
				(unsigned long long)nr_bad);
	if (packets.damage)
		reading_problem(reading, "ust/definitions: %s; %zu of %zu bytes were read",
				packets.damage, packets.next, length);
	return 0;
}
