/* SPDX-License-Identifier: MIT */
/*
 * The recorder's side of the memory: waiting, taking full packets, completing them.
 *
 * Order within a stream. A slot's packets are pushed in the order of their numbers, also over a
 * reuse of the slot (its next thread claims it after the former one ended). Taking everything at
 * once therefore takes a packet only together with, or after, all earlier ones of its slot;
 * sorting what was taken at once does the rest.
 *
 * The memory is shared with a program that may write anywhere: numbers read from it are checked
 * and walks are bounded.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/event/ctf.h"
#include "core/memory/packet_stack.h"

#define NS_PER_S 1000000000ull

static int by_slot_and_seq(const void *a, const void *b, void *context)
{
	const struct packet_control *left = memory_packet(context, *(const uint32_t *)a);
	const struct packet_control *right = memory_packet(context, *(const uint32_t *)b);

	if (left->slot != right->slot)
		return left->slot < right->slot ? -1 : 1;
	return (left->seq > right->seq) - (left->seq < right->seq);
}

uint32_t memory_take_full(struct memory *memory, uint32_t *indices)
{
	uint32_t nr_packets = memory->header->sizes.nr_packets;
	uint32_t link = (uint32_t)atomic_exchange_explicit(&memory->header->full_packets, 0,
							   memory_order_acq_rel);
	uint32_t taken = 0;

	while (link != 0 && link <= nr_packets && taken < nr_packets) {
		indices[taken++] = link - 1;
		link = packet_next(memory, link - 1);
	}
	qsort_r(indices, taken, sizeof(*indices), by_slot_and_seq, memory);
	return taken;
}

void packet_free(struct memory *memory, uint32_t index)
{
	atomic_store_explicit(&memory_packet(memory, index)->state, PACKET_FREE,
			      memory_order_relaxed);
	while (!packet_stack_push(memory, &memory->header->free_packets, index))
		; /* overtaken by threads that take packets; the recorder may wait */
}

uint32_t packet_index(const struct memory *memory, const struct packet_control *packet)
{
	return (uint32_t)((size_t)((const uint8_t *)packet - memory->packets) /
			  memory->header->sizes.packet_bytes);
}

void packet_complete(struct memory *memory, struct packet_control *packet, uint32_t used,
		     const uint8_t uuid[16], const char *procname)
{
	struct ctf_packet_prefix prefix = {
		.magic = CTF_MAGIC,
		.stream_id = CTF_STREAM_SAMPLES,
		.stream_instance_id = packet->slot,
		.timestamp_begin = packet->begin_ns,
		.timestamp_end = atomic_load_explicit(&packet->end_ns, memory_order_relaxed),
		.content_bits = 8ull * used,
		.packet_bits = 8ull * used,
		.packet_seq_num = packet->seq,
		.events_discarded = packet->lost,
		.vpid = packet->pid,
		.vtid = packet->tid,
	};

	(void)memory;
	memcpy(prefix.uuid, uuid, sizeof(prefix.uuid));
	memcpy(prefix.procname, procname, strnlen(procname, sizeof(prefix.procname) - 1));
	memcpy(packet_ctf(packet), &prefix, sizeof(prefix));
}

uint32_t memory_wait(struct memory *memory, uint32_t seen, uint64_t timeout_ns)
{
	_Atomic uint32_t *doorbell = &memory->header->doorbell;
	struct timespec deadline;
	uint64_t nanoseconds;
	uint32_t value;

	/* An absolute time, so that an interrupted wait does not start again. */
	clock_gettime(CLOCK_MONOTONIC, &deadline);
	nanoseconds = (uint64_t)deadline.tv_nsec + timeout_ns % NS_PER_S;
	deadline.tv_sec += (time_t)(timeout_ns / NS_PER_S + nanoseconds / NS_PER_S);
	deadline.tv_nsec = (long)(nanoseconds % NS_PER_S);
	for (;;) {
		value = atomic_load_explicit(doorbell, memory_order_acquire);
		if (value != seen)
			return value;
		if (syscall(SYS_futex, doorbell, FUTEX_WAIT_BITSET, seen, &deadline, NULL,
			    FUTEX_BITSET_MATCH_ANY) != 0 &&
		    errno != EINTR && errno != EAGAIN)
			return atomic_load_explicit(doorbell, memory_order_acquire);
	}
}

struct packet_control *slot_open_packet(const struct memory *memory, const struct slot *slot)
{
	struct packet_control *packet;

	if (slot->packet == 0 || slot->packet > memory->header->sizes.nr_packets)
		return NULL;
	packet = memory_packet(memory, slot->packet - 1);
	/* Killed between the push and forgetting: the packet was drained, or is another's now. */
	if (packet->slot != slot_index(memory, slot) ||
	    atomic_load_explicit(&packet->state, memory_order_acquire) == PACKET_FREE)
		return NULL;
	return packet;
}

void slot_free(struct memory *memory, struct slot *slot)
{
	struct packet_control *packet = slot_open_packet(memory, slot);

	/* Its thread was overtaken too often to hand it over; the next taking brings it. */
	if (packet) {
		atomic_store_explicit(&packet->state, PACKET_FULL, memory_order_relaxed);
		while (!packet_stack_push(memory, &memory->header->full_packets, slot->packet - 1))
			;
	}
	slot->packet = 0;
	slot_unclaim(memory, slot);
}
