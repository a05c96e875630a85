/* SPDX-License-Identifier: MIT */
/*
 * Packets of a stream file. What is checked here of each: magic, stream, that sizes are whole
 * bytes, not smaller than the prefix, equal to each other and inside the file.
 */
#include "tool/trace/trace_priv.h"

void packets_init(struct packets *packets, const uint8_t *bytes, size_t length)
{
	*packets = (struct packets){.bytes = bytes, .length = length};
}

static const char *prefix_damage(const struct ctf_packet_prefix *prefix, uint32_t stream_id)
{
	if (prefix->magic != CTF_MAGIC)
		return "no packet begins where one should";
	if (prefix->stream_id != stream_id)
		return "a packet is of another stream class";
	if (prefix->packet_bits != prefix->content_bits || prefix->packet_bits % 8 ||
	    prefix->packet_bits / 8 < CTF_PREFIX_BYTES)
		return "a packet's size is impossible";
	return NULL;
}

bool packets_next(struct packets *packets, uint32_t stream_id)
{
	struct ctf_packet_prefix *prefix = &packets->prefix;
	size_t left = packets->length - packets->next;
	uint64_t expected = packets->nr_read ? prefix->packet_seq_num + 1 : 0;
	uint64_t bytes;

	packets->at = packets->end = packets->length;
	if (!left || packets->damage)
		return false;
	if (left < CTF_PREFIX_BYTES) {
		packets->damage = "it ends inside a packet";
		return false;
	}
	memcpy(prefix, packets->bytes + packets->next, sizeof(*prefix));
	packets->damage = prefix_damage(prefix, stream_id);
	if (packets->damage)
		return false;
	bytes = prefix->packet_bits / 8;
	if (bytes > left) {
		packets->damage = "it ends inside a packet";
		bytes = left;
	}
	packets->at = packets->next + CTF_PREFIX_BYTES;
	packets->end = packets->next + (size_t)bytes;
	packets->next = packets->end;
	packets->now_ns = prefix->timestamp_begin;
	packets->missing =
		prefix->packet_seq_num > expected ? prefix->packet_seq_num - expected : 0;
	packets->nr_read++;
	return true;
}
