/* SPDX-License-Identifier: MIT */
/*
 * The free and the full packets: two stacks whose links are in the packets (Treiber 1986).
 *
 *   head   u64   tag << 32 | index + 1      0 in the low half: empty
 *   next   u32   what follows, minus what follows in an untouched packet
 *
 * An untouched packet, all zero, is followed by its neighbour, the last one by nothing: so a new
 * memory is one long free list of which no page was touched.
 *
 * Free packets are popped by many: the tag changes with every operation, so that a head that was
 * popped and pushed again meanwhile (ABA) is not taken for the old one. Full packets are never
 * popped, only taken all at once.
 *
 * No operation waits: a compare-and-swap that fails PACKET_STACK_TRIES times was overtaken as
 * often by others that made progress, and the caller counts a loss or tries at its next sample.
 */
#ifndef PATHPROF_CORE_MEMORY_PACKET_STACK_H
#define PATHPROF_CORE_MEMORY_PACKET_STACK_H

#include "core/memory/memory.h"

#define PACKET_STACK_TRIES 64 /* more threads than that never close a packet at once */

static inline uint32_t packet_untouched_next(const struct memory *memory, uint32_t index)
{
	return index + 1 < memory->header->sizes.nr_packets ? index + 2 : 0;
}

/** packet_next - index + 1 of what follows @index in its stack; 0: nothing. Signal-safe. */
static inline uint32_t packet_next(const struct memory *memory, uint32_t index)
{
	return atomic_load_explicit(&memory_packet(memory, index)->next, memory_order_relaxed) +
	       packet_untouched_next(memory, index);
}

static inline uint64_t packet_stack_retag(uint64_t head, uint32_t link)
{
	return ((head >> 32) + 1) << 32 | link;
}

/** packet_stack_push - put a packet on top. Returns false: overtaken too often. Signal-safe. */
static inline bool packet_stack_push(const struct memory *memory, _Atomic uint64_t *stack,
				     uint32_t index)
{
	struct packet_control *packet = memory_packet(memory, index);
	uint64_t head = atomic_load_explicit(stack, memory_order_relaxed);

	for (unsigned int tries = 0; tries < PACKET_STACK_TRIES; tries++) {
		atomic_store_explicit(&packet->next,
				      (uint32_t)head - packet_untouched_next(memory, index),
				      memory_order_relaxed);
		if (atomic_compare_exchange_strong_explicit(
			    stack, &head, packet_stack_retag(head, index + 1), memory_order_acq_rel,
			    memory_order_relaxed))
			return true;
	}
	return false;
}

/**
 * packet_stack_pop - take the packet on top
 * Returns its index + 1, or 0: none there, or overtaken too often. Signal-safe.
 */
static inline uint32_t packet_stack_pop(const struct memory *memory, _Atomic uint64_t *stack)
{
	uint64_t head = atomic_load_explicit(stack, memory_order_acquire);

	for (unsigned int tries = 0; tries < PACKET_STACK_TRIES; tries++) {
		uint32_t link = (uint32_t)head;

		if (link == 0 || link > memory->header->sizes.nr_packets)
			return 0;
		if (atomic_compare_exchange_strong_explicit(
			    stack, &head, packet_stack_retag(head, packet_next(memory, link - 1)),
			    memory_order_acq_rel, memory_order_acquire))
			return link;
	}
	return 0;
}

#endif
