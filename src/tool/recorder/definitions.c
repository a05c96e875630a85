/* SPDX-License-Identifier: MIT */
/*
 * Codes, nodes, threads and processes to ust/definitions: stream class 1 of core/event/ctf.h.
 *
 * The tables are append-only, so a cursor says what was written. A record that was reserved but not
 * committed when we came by goes on a list of holes and is looked at again; a child node is made
 * after its parent was committed, so ids in rising order have parents first.
 *
 * Events gather in one packet, which is written when it has PACKET_BYTES or somebody needs what is
 * in it. If that fails the packet is kept and tried again; beyond KEPT_BYTES of them what comes is
 * dropped and counted.
 */
#include "tool/recorder/recorder_types.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cpython/cpython.h"
#include "core/event/ctf.h"

#define PACKET_BYTES (64u << 10)
#define KEPT_BYTES   (64u << 20) /* while the disk is full */

int definitions_init(struct definitions *definitions, int ust_fd, const uint8_t uuid[16])
{
	memset(definitions, 0, sizeof(*definitions));
	definitions->packet = malloc(2 * PACKET_BYTES);
	if (!definitions->packet)
		return -ENOMEM;
	definitions->capacity = 2 * PACKET_BYTES;
	definitions->used = CTF_PREFIX_BYTES;
	definitions->ust_fd = ust_fd;
	definitions->nodes_done = definitions->codes_done = 1; /* 0 is none */
	memcpy(definitions->uuid, uuid, 16);
	return 0;
}

void definitions_release(struct definitions *definitions)
{
	free(definitions->packet);
	free(definitions->node_holes);
	free(definitions->code_holes);
	memset(definitions, 0, sizeof(*definitions));
}

/* Room for @bytes more in the packet. */
static int reserve(struct definitions *definitions, size_t bytes)
{
	size_t needed = definitions->used + bytes;
	uint8_t *packet;

	if (needed <= definitions->capacity)
		return 0;
	if (needed > KEPT_BYTES) {
		definitions->dropped++;
		return -ENOSPC;
	}
	packet = realloc(definitions->packet, needed + needed / 2);
	if (!packet)
		return -ENOMEM;
	definitions->packet = packet;
	definitions->capacity = needed + needed / 2;
	return 0;
}

static void put_bytes(struct definitions *definitions, const void *bytes, size_t length)
{
	memcpy(definitions->packet + definitions->used, bytes, length);
	definitions->used += length;
}

static void put_u8(struct definitions *definitions, unsigned int value)
{
	definitions->packet[definitions->used++] = (uint8_t)value;
}

static void put_u32(struct definitions *definitions, uint32_t value)
{
	put_bytes(definitions, &value, sizeof(value));
}

static void put_u64(struct definitions *definitions, uint64_t value)
{
	put_bytes(definitions, &value, sizeof(value));
}

static void put_string(struct definitions *definitions, const char *text)
{
	put_bytes(definitions, text, strlen(text) + 1);
}

/* Begin an event whose fields take at most @bytes. */
static int begin_event(struct definitions *definitions, enum ctf_definition_id id, size_t bytes)
{
	uint64_t now = now_ns();
	int code = 0;

	if (definitions->used >= PACKET_BYTES)
		(void)definitions_flush(
			definitions); /* a failure shows at the next one that counts */
	code = reserve(definitions, 13 + bytes);
	if (code)
		return code;
	if (now < definitions->last_ns)
		now = definitions->last_ns;
	if (definitions->used == CTF_PREFIX_BYTES)
		definitions->begin_ns = definitions->last_ns = now;
	definitions->used += ctf_put_header(definitions->packet + definitions->used, id, now,
					    definitions->last_ns);
	definitions->last_ns = now;
	return 0;
}

int definitions_flush(struct definitions *definitions)
{
	struct ctf_packet_prefix prefix = {
		.magic = CTF_MAGIC,
		.stream_id = CTF_STREAM_DEFS,
		.timestamp_begin = definitions->begin_ns,
		.timestamp_end = definitions->last_ns,
		.content_bits = 8ull * definitions->used,
		.packet_bits = 8ull * definitions->used,
		.packet_seq_num = definitions->seq,
	};
	ssize_t written;
	int fd, code = 0;

	if (definitions->used == CTF_PREFIX_BYTES)
		return 0;
	memcpy(prefix.uuid, definitions->uuid, 16);
	memcpy(definitions->packet, &prefix, sizeof(prefix));
	fd = directory_open_file(definitions->ust_fd, RECORDING_DEFINITIONS, O_APPEND);
	if (fd < 0)
		return fd;
	do
		written = write(fd, definitions->packet, definitions->used);
	while (written < 0 && errno == EINTR);
	if (written != (ssize_t)definitions->used) {
		code = written < 0 ? -errno : -ENOSPC;
		if (ftruncate(fd, (off_t)definitions->file_bytes))
			code = -errno;
	} else {
		definitions->file_bytes += definitions->used;
		definitions->used = CTF_PREFIX_BYTES;
		definitions->seq++;
	}
	close(fd);
	return code;
}

/* A text of the table as UTF-8; NULL where it does not lie in the region. */
static char *table_text(const struct memory *memory, uint64_t at, uint32_t length, uint8_t width)
{
	uint64_t bytes = (uint64_t)length * width, size = memory->header->sizes.text_bytes;

	if ((width != 1 && width != 2 && width != 4) || at > size || bytes > size - at)
		return NULL;
	return cpython_text_utf8(memory->text + at, length, width);
}

static int put_code(struct definitions *definitions, const struct memory *memory, uint32_t id)
{
	const struct code *code = &memory->codes[id];
	uint64_t size = memory->header->sizes.text_bytes;
	uint32_t length = code->line_table_length;
	char *name = table_text(memory, code->name_at, code->name_length, code->name_width);
	char *file = table_text(memory, code->file_at, code->file_length, code->file_width);
	const char *name_text = name ? name : "", *file_text = file ? file : "";
	int result;

	if (code->line_table_at > size || length > size - code->line_table_at)
		length = 0;
	result = begin_event(definitions, CTF_DEF_CODE,
			     strlen(name_text) + strlen(file_text) + length + 32);
	if (!result) {
		put_u32(definitions, id);
		put_u32(definitions, code->first_line);
		put_u8(definitions, code->line_table_kind);
		put_string(definitions, name_text);
		put_string(definitions, file_text);
		put_u32(definitions, length);
		put_bytes(definitions, memory->text + code->line_table_at, length);
		definitions->nr_codes++;
	}
	free(name);
	free(file);
	return result;
}

static int put_node(struct definitions *definitions, const struct node *node, uint32_t id,
		    uint64_t where)
{
	int result = begin_event(definitions, CTF_DEF_NODE, 32);

	if (result)
		return result;
	put_u32(definitions, id);
	put_u32(definitions, node->parent);
	put_u8(definitions, (unsigned int)(where >> 56));
	put_u8(definitions, (unsigned int)(where >> 48) & 255);
	put_u32(definitions, node->owner);
	put_u64(definitions, where & NODE_POSITION_MASK);
	definitions->nr_nodes++;
	return 0;
}

/* Write the record @id if it is committed. Returns -EAGAIN where it is not. */
typedef int (*put_record)(struct definitions *definitions, const struct memory *memory,
			  uint32_t id);

static int try_code(struct definitions *definitions, const struct memory *memory, uint32_t id)
{
	if (!atomic_load_explicit(&memory->codes[id].committed, memory_order_acquire))
		return -EAGAIN;
	return put_code(definitions, memory, id);
}

static int try_node(struct definitions *definitions, const struct memory *memory, uint32_t id)
{
	const struct node *node = &memory->nodes[id];
	uint64_t where = atomic_load_explicit(&node->where, memory_order_acquire);

	return where ? put_node(definitions, node, id, where) : -EAGAIN;
}

struct cursor {
	uint32_t *done;
	uint32_t **holes;
	size_t *nr_holes;
	put_record put;
};

static int add_hole(struct cursor *cursor, uint32_t id)
{
	/* Powers of two: the array is full where the number is one. */
	if ((*cursor->nr_holes & (*cursor->nr_holes - 1)) == 0) {
		size_t room = *cursor->nr_holes ? 2 * *cursor->nr_holes : 1;
		uint32_t *holes = realloc(*cursor->holes, room * sizeof(uint32_t));

		if (!holes)
			return -ENOMEM;
		*cursor->holes = holes;
	}
	(*cursor->holes)[(*cursor->nr_holes)++] = id;
	return 0;
}

static int take_table(struct definitions *definitions, const struct memory *memory,
		      struct cursor *cursor, uint32_t used)
{
	size_t kept = 0;
	int code = 0;

	for (size_t i = 0; i < *cursor->nr_holes; i++) {
		uint32_t id = (*cursor->holes)[i];
		int result = cursor->put(definitions, memory, id);

		if (result)
			(*cursor->holes)[kept++] = id;
		if (result && result != -EAGAIN)
			code = result;
	}
	*cursor->nr_holes = kept;
	for (; *cursor->done < used && !code; ++*cursor->done) {
		code = cursor->put(definitions, memory, *cursor->done);
		if (code == -EAGAIN)
			code = add_hole(cursor, *cursor->done);
		if (code)
			break;
	}
	return code;
}

int definitions_take(struct definitions *definitions, const struct memory *memory)
{
	const struct memory_sizes *sizes = &memory->header->sizes;
	/* Nodes first: their codes were committed before them, so are below codes_used then. */
	uint32_t nodes = atomic_load_explicit(&memory->header->nodes_used, memory_order_acquire);
	uint32_t codes = atomic_load_explicit(&memory->header->codes_used, memory_order_acquire);
	struct cursor code_cursor = {&definitions->codes_done, &definitions->code_holes,
				     &definitions->nr_code_holes, try_code};
	struct cursor node_cursor = {&definitions->nodes_done, &definitions->node_holes,
				     &definitions->nr_node_holes, try_node};
	int code;

	code = take_table(definitions, memory, &code_cursor,
			  codes < sizes->nr_codes ? codes : sizes->nr_codes);
	if (code)
		return code;
	return take_table(definitions, memory, &node_cursor,
			  nodes < sizes->nr_nodes ? nodes : sizes->nr_nodes);
}

/* Length of the UTF-8 character at @at, 0 where there is none or one that no text should have. */
static size_t character_length(const unsigned char *at)
{
	size_t length = at[0] < 0x80 ? 1 : at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;

	if (at[0] < 0x20 || at[0] == 0x7f || (at[0] >= 0x80 && at[0] < 0xc2) || at[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	}
	/* Overlong forms, surrogates, beyond Unicode. */
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
	    (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
		return 0;
	return length;
}

/* A name from the target or the kernel: bytes that are no text are shown as \xNN. */
static char *clean(const char *bytes)
{
	size_t room = 4 * strlen(bytes) + 1;
	char *text = malloc(room), *to = text;

	while (text && *bytes) {
		size_t length = character_length((const unsigned char *)bytes);

		if (length)
			to = mempcpy(to, bytes, length);
		else
			to += snprintf(to, room - (size_t)(to - text), "\\x%02x",
				       (unsigned char)*bytes);
		bytes += length ? length : 1;
	}
	if (text)
		*to = 0;
	return text;
}

int definitions_put_thread(struct definitions *definitions, const struct thread_record *thread)
{
	char *name = clean(thread->name);
	int code = name ? begin_event(definitions, CTF_DEF_THREAD, 96 + strlen(name)) : -ENOMEM;

	if (!code) {
		put_u32(definitions, thread->slot);
		put_u32(definitions, thread->pid);
		put_u32(definitions, thread->tid);
		put_u64(definitions, thread->start_ns);
		put_u64(definitions, thread->end_ns);
		put_u64(definitions, thread->cpu_ns);
		put_u64(definitions, thread->samples);
		put_u64(definitions, thread->lost);
		put_u64(definitions, thread->overrun);
		put_u64(definitions, thread->voluntary_switches);
		put_string(definitions, name);
	}
	free(name);
	return code;
}

int definitions_put_process(struct definitions *definitions, const struct process_record *process)
{
	char *command = clean(process->command);
	int code = command ? begin_event(definitions, CTF_DEF_PROCESS,
					 32 + strlen(command) + strlen(process->reason))
			   : -ENOMEM;

	if (!code) {
		put_u32(definitions, process->pid);
		put_u32(definitions, process->ppid);
		put_u64(definitions, process->start_ns);
		put_u8(definitions, process->recorded);
		put_string(definitions, command);
		put_string(definitions, process->reason);
	}
	free(command);
	return code;
}
