/* SPDX-License-Identifier: MIT */
/*
 * Packets to stream files: ust/slot_NNNN, one a slot, open only while they are written, so that
 * a thousand slots are no thousand descriptors.
 *
 * A round: see which slots have ended, then take what is full (so that all of theirs is in it),
 * write the definitions first, then the packets, then the records of the ended threads.
 *
 * A flush writes what lies in packets that are not full, so that a recorder that is killed loses
 * little: each such part is a CTF packet of its own, and what comes later in the packet another.
 * The agent numbers its packets, so the numbers in the stream are those and the parts beyond.
 *
 * A packet is in a file whole or not at all: what a full disk cut is truncated away and its samples
 * are counted as lost. Definitions that could not be written stay in memory for the next try; the
 * packets that may need them are not written before them.
 */
#include "tool/recorder/recorder_types.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/event/ctf.h"

#define SLOTS_AHEAD 4 /* unused slots looked at beyond the last used one: claims may race */

uint32_t drain_slots_in_use(struct recorder *recorder)
{
	const struct memory *memory = &recorder->memory;
	uint32_t nr_slots = memory->header->sizes.nr_slots, ahead = 0;

	/* A slot that was never claimed has generation 0. Looking at it costs a page once. */
	for (uint32_t i = recorder->slots_seen; i < nr_slots && ahead < SLOTS_AHEAD; i++) {
		ahead++;
		if (atomic_load_explicit(&memory->slots[i].state, memory_order_acquire) ==
			    SLOT_FREE &&
		    !memory->slots[i].generation)
			continue;
		recorder->slots_seen = i + 1;
		ahead = 0;
	}
	return recorder->slots_seen;
}

/* Append to the slot's stream; what cannot be whole is undone. */
static int append(struct recorder *recorder, uint32_t slot, const struct iovec parts[2])
{
	struct shadow *shadow = &recorder->shadows[slot];
	size_t length = parts[0].iov_len + parts[1].iov_len;
	char name[32];
	ssize_t written;
	int fd, code = 0;

	snprintf(name, sizeof(name), RECORDING_STREAM "%04u", slot);
	fd = directory_open_file(recorder->directory.ust_fd, name, O_APPEND);
	if (fd < 0)
		return fd;
	do
		written = writev(fd, parts, 2);
	while (written < 0 && errno == EINTR);
	if (written != (ssize_t)length) {
		code = written < 0 ? -errno : -ENOSPC;
		if (ftruncate(fd, (off_t)shadow->file_bytes))
			code = -errno;
		if (!shadow->file_bytes)
			unlinkat(recorder->directory.ust_fd, name, 0);
	} else {
		shadow->file_bytes += length;
	}
	if (close(fd) && !code)
		code = -errno;
	return code;
}

static void lose_samples(struct recorder *recorder, uint64_t number, int code)
{
	recorder->totals.lost[LOSS_DISK] += number;
	if (recorder->disk_full)
		return;
	recorder->disk_full = true;
	note(recorder, "Part of the recording could not be written to %s: %s",
	     recorder->directory.path, strerror(-code));
}

/* A word that the target may write meanwhile: what was checked is what is used. */
static uint32_t read_once(const uint32_t *word)
{
	return *(const volatile uint32_t *)word;
}

/* The packet's slot, or SLOT_NONE: nothing in it can be believed. */
static uint32_t believable_slot(const struct recorder *recorder,
				const struct packet_control *packet, uint32_t used)
{
	const struct memory_sizes *sizes = &recorder->memory.header->sizes;
	uint32_t slot = read_once(&packet->slot);

	return slot < sizes->nr_slots && used >= CTF_PREFIX_BYTES &&
			       used <= sizes->packet_bytes - sizeof(*packet)
		       ? slot
		       : SLOT_NONE;
}

/* What of the packet was written; it is another's record where it was used again since. */
static struct packet_written *written_of(struct recorder *recorder, struct packet_control *packet,
					 uint32_t slot)
{
	struct packet_written *written =
		&recorder->written[packet_index(&recorder->memory, packet)];
	uint32_t seq = read_once(&packet->seq);

	if (!written->part.end || written->slot != slot || written->seq != seq)
		*written = (struct packet_written){
			.part = {.end = CTF_PREFIX_BYTES, .last_ns = packet->begin_ns},
			.slot = slot,
			.seq = seq};
	return written;
}

/* Write the events from what was written up to @next, as one CTF packet. */
static int write_part(struct recorder *recorder, struct packet_control *packet,
		      struct packet_written *written, const struct part *next)
{
	struct shadow *shadow = &recorder->shadows[written->slot];
	uint32_t bytes = next->end - written->part.end;
	struct ctf_packet_prefix prefix;
	const struct iovec parts[2] = {{&prefix, sizeof(prefix)},
				       {packet_ctf(packet) + written->part.end, bytes}};
	int code;

	packet_complete(&recorder->memory, packet, CTF_PREFIX_BYTES + bytes, recorder->uuid,
			recorder->memory.slots[written->slot].name);
	memcpy(&prefix, packet_ctf(packet), sizeof(prefix));
	prefix.timestamp_begin = written->part.last_ns;
	prefix.timestamp_end = next->last_ns;
	prefix.packet_seq_num = written->seq + shadow->more_parts;
	code = append(recorder, written->slot, parts);
	if (code)
		return code;
	recorder->totals.samples += next->samples - written->part.samples;
	written->part = *next;
	shadow->more_parts++;
	return 0;
}

/*
 * What is left of a packet that gets no more events. @undefined: why its definitions could not be
 * written; 0: they were.
 */
static void finish_packet(struct recorder *recorder, struct packet_control *packet, int undefined)
{
	uint32_t used = atomic_load_explicit(&packet->used, memory_order_acquire);
	uint32_t slot = believable_slot(recorder, packet, used);
	struct packet_written *written;
	struct shadow *shadow;
	struct part next;
	int code = undefined;

	if (slot == SLOT_NONE)
		return;
	shadow = &recorder->shadows[slot];
	written = written_of(recorder, packet, slot);
	next = written->part;
	part_measure(packet_ctf(packet), used, recorder->request->nr_events, &next);
	if (next.end > written->part.end) {
		if (!code)
			code = write_part(recorder, packet, written, &next);
		if (code)
			lose_samples(recorder, next.samples - written->part.samples, code);
	}
	shadow->next_seq = written->seq + 1;
	/* Parts are numbered; so is, by a gap, what could not be written or is no event. */
	if (next.end == written->part.end && next.end == used)
		shadow->more_parts--;
}

static void give_back(struct recorder *recorder, uint32_t index)
{
	recorder->written[index] = (struct packet_written){0};
	packet_free(&recorder->memory, index);
}

static int write_definitions(struct recorder *recorder)
{
	int code = definitions_take(&recorder->definitions, &recorder->memory);

	return code ? code : definitions_flush(&recorder->definitions);
}

static uint32_t find_ended(struct recorder *recorder)
{
	uint32_t slots = drain_slots_in_use(recorder), ended = 0;

	for (uint32_t i = 0; i < slots; i++) {
		if (atomic_load_explicit(&recorder->memory.slots[i].state, memory_order_acquire) ==
		    SLOT_ENDED)
			recorder->ended[ended++] = i;
	}
	return ended;
}

/* What a thread that runs no more had not handed over, and its end. */
static void finish_slot(struct recorder *recorder, struct slot *slot, int undefined)
{
	struct packet_control *packet = slot_open_packet(&recorder->memory, slot);

	if (packet) {
		finish_packet(recorder, packet, undefined);
		slot->packet = 0;
		give_back(recorder, packet_index(&recorder->memory, packet));
	}
	throttle_settle_slot(recorder, slot);
	arming_release(recorder, slot);
	threads_ended(recorder, slot);
	slot_free(&recorder->memory, slot);
}

void drain_round(struct recorder *recorder)
{
	struct memory *memory = &recorder->memory;
	uint32_t ended = find_ended(recorder);
	uint32_t taken = memory_take_full(memory, recorder->indices);
	int undefined = 0;

	if (taken || ended)
		undefined = write_definitions(recorder);
	for (uint32_t i = 0; i < taken; i++) {
		finish_packet(recorder, memory_packet(memory, recorder->indices[i]), undefined);
		give_back(recorder, recorder->indices[i]);
	}
	for (uint32_t i = 0; i < ended; i++)
		finish_slot(recorder, &memory->slots[recorder->ended[i]], undefined);
}

/*
 * The packet that the slot's thread writes to, where something in it is not written yet and all
 * packets before it are. Only we free packets, so it is not another's while we look.
 */
static struct packet_control *packet_to_flush(struct recorder *recorder, uint32_t slot)
{
	struct memory *memory = &recorder->memory;
	uint32_t link = read_once(&memory->slots[slot].packet), used;
	struct packet_written *written;
	struct packet_control *packet;

	if (!link || link > memory->header->sizes.nr_packets)
		return NULL;
	packet = memory_packet(memory, link - 1);
	/* Acquire: from here on the fields are those of the one who opened it last. */
	if (atomic_load_explicit(&packet->state, memory_order_acquire) == PACKET_FREE)
		return NULL;
	used = atomic_load_explicit(&packet->used, memory_order_acquire);
	if (believable_slot(recorder, packet, used) != slot)
		return NULL;
	written = written_of(recorder, packet, slot);
	written->due = used;
	/* Between a round and now it may have filled one and begun the next: then the next time. */
	return written->seq == recorder->shadows[slot].next_seq && used > written->part.end ? packet
											    : NULL;
}

void drain_flush(struct recorder *recorder)
{
	struct memory *memory = &recorder->memory;
	uint32_t slots, number = 0;

	drain_round(recorder);
	slots = drain_slots_in_use(recorder);
	for (uint32_t i = 0; i < slots; i++) {
		uint32_t state =
			atomic_load_explicit(&memory->slots[i].state, memory_order_acquire);
		struct packet_control *packet =
			state == SLOT_ACTIVE ? packet_to_flush(recorder, i) : NULL;

		if (packet)
			recorder->indices[number++] = packet_index(memory, packet);
	}
	/* After `used` was read: whatever the events below it name is committed. */
	if (write_definitions(recorder))
		return; /* nothing is lost yet: it stays in memory for the next time */
	for (uint32_t i = 0; i < number; i++) {
		struct packet_control *packet = memory_packet(memory, recorder->indices[i]);
		struct packet_written *written = &recorder->written[recorder->indices[i]];
		struct part next = written->part;

		part_measure(packet_ctf(packet), written->due, recorder->request->nr_events, &next);
		if (next.end > written->part.end)
			(void)write_part(recorder, packet, written, &next); /* or the next time */
	}
}

/* The threads of an image that is gone: by exec, or by the process's death. */
void drain_end_image(struct recorder *recorder, uint64_t end_ns)
{
	uint32_t slots;
	int undefined;

	drain_round(recorder);
	undefined = write_definitions(recorder);
	slots = drain_slots_in_use(recorder);
	for (uint32_t i = 0; i < slots; i++) {
		struct slot *slot = &recorder->memory.slots[i];
		uint32_t state = atomic_load_explicit(&slot->state, memory_order_acquire);

		if (state == SLOT_CLAIMED)
			slot_unclaim(&recorder->memory, slot);
		if (state != SLOT_ACTIVE && state != SLOT_ENDED)
			continue;
		if (!slot->end_ns)
			slot->end_ns = end_ns;
		finish_slot(recorder, slot, undefined);
	}
	throttle_settle_shared(recorder);
	arming_end_image(recorder);
}

uint64_t drain_bytes(const struct recorder *recorder)
{
	uint64_t bytes = recorder->definitions.file_bytes;

	for (uint32_t i = 0; i < recorder->slots_seen; i++)
		bytes += recorder->shadows[i].file_bytes;
	return bytes;
}
