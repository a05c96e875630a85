/* SPDX-License-Identifier: MIT */
/*
 * ust/definitions with its nodes as columns: they are most of it, 26 bytes each, and need three.
 *
 *   u64 nr_nodes, u64 nr_other
 *   column: the other bytes
 *   values: of each node, how many of the other bytes stand in front of it; its header, id, parent,
 *           kind and flags, owner and position
 *
 * Ids and headers are stored as differences from the node before, a parent as that from its child.
 * Packing finds the nodes; unpacking need not know what the other bytes are.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/event/ctf.h"
#include "tool/trace/columns.h"
#include "tool/trace/columns_priv.h"
#include "tool/trace/trace_priv.h"

enum field {
	FIELD_OTHER, /* bytes in front of the node */
	FIELD_HEADER,
	FIELD_ID,
	FIELD_PARENT,
	FIELD_KIND, /* and flags */
	FIELD_OWNER,
	FIELD_POSITION,
	NR_FIELDS
};

struct node_event { /* with a compact header */
	uint32_t header, id, parent;
	uint16_t kind;
	uint32_t owner;
	uint64_t position;
} __attribute__((packed));

#define NODE_BYTES sizeof(struct node_event)

_Static_assert(NODE_BYTES == 26, "node events are stored");

struct node_columns {
	uint64_t nr_nodes, nr_other;
	uint8_t *other;
	uint64_t *values[NR_FIELDS];
};

static void node_columns_release(struct node_columns *columns)
{
	free(columns->other);
	for (unsigned int f = 0; f < NR_FIELDS; f++)
		free(columns->values[f]);
}

static int node_columns_init(struct node_columns *columns, size_t nr_nodes, size_t nr_other)
{
	int rc = 0;

	columns->other = malloc(nr_other + 1);
	for (unsigned int f = 0; f < NR_FIELDS; f++) {
		columns->values[f] = calloc(nr_nodes + 1, sizeof(uint64_t));
		if (!columns->values[f])
			rc = -ENOMEM;
	}
	return columns->other ? rc : -ENOMEM;
}

/* ---- packing ---- */

/* Step over the fields of an event that is no node; false where that cannot be done. */
static bool skip_event(struct packets *packets, uint32_t id)
{
	static const struct {
		uint8_t fixed, strings;
	} shapes[] = {
		[CTF_DEF_CODE] = {9, 2},     [CTF_DEF_NODE] = {NODE_BYTES - 4, 0},
		[CTF_DEF_MODULE] = {28, 2},  [CTF_DEF_THREAD] = {68, 1},
		[CTF_DEF_PROCESS] = {17, 2},
	};
	const uint8_t *end = packets->bytes + packets->end, *at = packets->bytes + packets->at;
	uint32_t table = 0;

	if (id > CTF_DEF_PROCESS || end - at < shapes[id].fixed)
		return false;
	at += shapes[id].fixed;
	for (unsigned int i = 0; i < shapes[id].strings; i++) {
		at = memchr(at, 0, (size_t)(end - at));
		if (!at)
			return false;
		at++;
	}
	if (id == CTF_DEF_CODE) {
		if (end - at < (ptrdiff_t)sizeof(table))
			return false;
		memcpy(&table, at, sizeof(table));
		at += sizeof(table);
	}
	if ((size_t)(end - at) < table)
		return false;
	packets->at = (size_t)(at - packets->bytes) + table;
	return true;
}

/* The fields of the node at @event, which follows @before. */
static void take_node(struct node_columns *columns, const struct node_event *node,
		      const struct node_event *before, uint64_t nr_other)
{
	uint64_t i = columns->nr_nodes++;

	columns->values[FIELD_OTHER][i] = nr_other;
	columns->values[FIELD_HEADER][i] = zigzag((uint64_t)node->header - before->header);
	columns->values[FIELD_ID][i] = zigzag((uint64_t)node->id - before->id - 1);
	columns->values[FIELD_PARENT][i] = zigzag((uint64_t)node->id - node->parent - 1);
	columns->values[FIELD_KIND][i] = node->kind;
	columns->values[FIELD_OWNER][i] = node->owner;
	columns->values[FIELD_POSITION][i] = node->position;
}

static void take_other(struct node_columns *columns, const uint8_t *from, size_t length)
{
	memcpy(columns->other + columns->nr_other, from, length);
	columns->nr_other += length;
}

static void take_nodes(struct node_columns *columns, const uint8_t *bytes, size_t length)
{
	struct node_event before = {0}, node;
	struct packets packets;
	size_t done = 0; /* taken until here */
	uint32_t id;

	packets_init(&packets, bytes, length);
	while (packets_next(&packets, CTF_STREAM_DEFS)) {
		size_t at = packets.at;

		for (; packets_event(&packets, &id) && skip_event(&packets, id); at = packets.at) {
			if (id != CTF_DEF_NODE || packets.at - at != NODE_BYTES)
				continue;
			memcpy(&node, bytes + at, sizeof(node));
			take_node(columns, &node, &before, at - done);
			take_other(columns, bytes + done, at - done);
			done = packets.at;
			before = node;
		}
	}
	take_other(columns, bytes + done, length - done);
}

int definitions_pack(const uint8_t *bytes, size_t length, struct bytes *out)
{
	struct node_columns columns = {0};
	size_t start = out->length;
	int rc = node_columns_init(&columns, length / NODE_BYTES, length);

	if (!rc) {
		take_nodes(&columns, bytes, length);
		rc = u64_put(out, columns.nr_nodes);
	}
	rc = rc ? rc : u64_put(out, columns.nr_other);
	rc = rc ? rc : text_put(out, columns.other, (size_t)columns.nr_other);
	for (unsigned int f = 0; f < NR_FIELDS && !rc; f++)
		rc = values_put(out, columns.values[f], (size_t)columns.nr_nodes);
	node_columns_release(&columns);
	rc = rc ? rc : columns_check(out, start, bytes, length, definitions_unpack);
	if (rc)
		out->length = start;
	return rc;
}

/* ---- unpacking ---- */

static int get_nodes(struct source *source, struct node_columns *columns, size_t length)
{
	int rc = u64_get(source, &columns->nr_nodes);

	rc = rc ? rc : u64_get(source, &columns->nr_other);
	if (rc || columns->nr_nodes > length / NODE_BYTES ||
	    columns->nr_other != length - columns->nr_nodes * NODE_BYTES)
		return -EBADMSG;
	rc = node_columns_init(columns, (size_t)columns->nr_nodes, (size_t)columns->nr_other);
	rc = rc ? rc : column_get(source, columns->other, (size_t)columns->nr_other);
	for (unsigned int f = 0; f < NR_FIELDS && !rc; f++)
		rc = values_get(source, columns->values[f], (size_t)columns->nr_nodes);
	return rc;
}

static struct node_event make_node(const struct node_columns *columns, uint64_t i,
				   const struct node_event *before)
{
	struct node_event node;

	node.header = before->header + (uint32_t)unzigzag(columns->values[FIELD_HEADER][i]);
	node.id = before->id + 1 + (uint32_t)unzigzag(columns->values[FIELD_ID][i]);
	node.parent = node.id - 1 - (uint32_t)unzigzag(columns->values[FIELD_PARENT][i]);
	node.kind = (uint16_t)columns->values[FIELD_KIND][i];
	node.owner = (uint32_t)columns->values[FIELD_OWNER][i];
	node.position = columns->values[FIELD_POSITION][i];
	return node;
}

static int put_nodes(const struct node_columns *columns, uint8_t *to)
{
	const uint8_t *other = columns->other;
	uint64_t left = columns->nr_other;
	struct node_event node = {0};

	for (uint64_t i = 0; i < columns->nr_nodes; i++) {
		uint64_t in_front = columns->values[FIELD_OTHER][i];

		if (in_front > left)
			return -EBADMSG;
		memcpy(to, other, (size_t)in_front);
		to += in_front;
		other += in_front;
		left -= in_front;
		node = make_node(columns, i, &node);
		memcpy(to, &node, NODE_BYTES);
		to += NODE_BYTES;
	}
	memcpy(to, other, (size_t)left);
	return 0;
}

int definitions_unpack(const uint8_t *packed, size_t packed_length, uint8_t *bytes, size_t length)
{
	struct source source = {.at = packed, .end = packed + packed_length};
	struct node_columns columns = {0};
	int rc = get_nodes(&source, &columns, length);

	if (!rc)
		rc = source.at == source.end ? put_nodes(&columns, bytes) : -EBADMSG;
	node_columns_release(&columns);
	return rc;
}
