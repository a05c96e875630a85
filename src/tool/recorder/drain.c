/* SPDX-License-Identifier: MIT */
/*
 * Packets to stream files: ust/slot_NNNN, one a slot, open only while they are written, so that
 * a thousand slots are no thousand descriptors.
 *
 * A round: see which slots have ended, then take what is full (so that all of theirs is in it),
 * write the definitions first, then the packets, then the records of the ended threads.
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
static int append(struct recorder *recorder, uint32_t slot, const void *bytes, size_t length)
{
	struct shadow *shadow = &recorder->shadows[slot];
	char name[32];
	ssize_t written;
	int fd, code = 0;

	snprintf(name, sizeof(name), "slot_%04u", slot);
	fd = openat(recorder->directory.ust_fd, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
		    0666);
	if (fd < 0)
		return -errno;
	do
		written = write(fd, bytes, length);
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

static void lose_packet(struct recorder *recorder, const struct packet_control *packet, int code)
{
	recorder->totals.lost[LOSS_DISK] += packet->samples;
	if (recorder->disk_full)
		return;
	recorder->disk_full = true;
	note(recorder, "Part of the recording could not be written to %s: %s",
	     recorder->directory.path, strerror(-code));
}

/* @undefined: why its definitions could not be written; 0: they were. */
static void write_packet(struct recorder *recorder, struct packet_control *packet, int undefined)
{
	uint32_t used = atomic_load_explicit(&packet->used, memory_order_acquire);
	const struct memory_sizes *sizes = &recorder->memory.header->sizes;
	int code = undefined;

	/* The target can write here: check what is used as an index or a length. */
	if (packet->slot >= sizes->nr_slots || used < CTF_PREFIX_BYTES ||
	    used > sizes->packet_bytes - sizeof(*packet) || !packet->samples)
		return;
	packet_complete(&recorder->memory, packet, used, recorder->uuid,
			recorder->memory.slots[packet->slot].name);
	if (!code)
		code = append(recorder, packet->slot, packet_ctf(packet), used);
	if (code)
		lose_packet(recorder, packet, code);
	else
		recorder->totals.samples += packet->samples;
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
		write_packet(recorder, packet, undefined);
		slot->packet = 0;
		packet_free(&recorder->memory, packet_index(&recorder->memory, packet));
	}
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
		write_packet(recorder, memory_packet(memory, recorder->indices[i]), undefined);
		packet_free(memory, recorder->indices[i]);
	}
	for (uint32_t i = 0; i < ended; i++)
		finish_slot(recorder, &memory->slots[recorder->ended[i]], undefined);
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
}

uint64_t drain_bytes(const struct recorder *recorder)
{
	uint64_t bytes = recorder->definitions.file_bytes;

	for (uint32_t i = 0; i < recorder->slots_seen; i++)
		bytes += recorder->shadows[i].file_bytes;
	return bytes;
}
