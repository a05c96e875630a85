/* SPDX-License-Identifier: MIT */
/*
 * The agent's side of the memory: slots and packets. Everything here runs in signal handlers.
 *
 * A slot belongs to one thread at a time and so do its counters and its open packet: plain
 * accesses, no contention. Shared are only the states of the slots, the two packet stacks and the
 * doorbell.
 *
 *   free stack --pop--> open in a slot --push--> full stack --taken by the recorder--> free
 *
 * Appending is: write the event behind `used`, then store `used` with release. Whatever is below
 * `used` is complete, also when the process is killed between any two instructions. A packet is
 * closed as soon as the largest event would not fit, so appending never checks for room twice.
 *
 * Killed while closing: the packet is pushed before the slot forgets it, so the recorder finds it
 * on the full stack or through the slot (slot_open_packet()).
 */
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/event/ctf.h"
#include "core/memory/packet_stack.h"

#define END_PUSHES 16 /* rounds of PACKET_STACK_TRIES that a thread's end is worth */

uint32_t slot_index(const struct memory *memory, const struct slot *slot)
{
	return (uint32_t)(slot - memory->slots);
}

/* Not: packet_seq, last_ns, walk_epoch, which go on over reuse; memo, stale by its epoch. */
static void clear_slot(struct slot *slot)
{
	for (unsigned int i = 0; i < NR_LOSS_REASONS; i++) {
		slot->lost_before += atomic_load_explicit(&slot->lost[i], memory_order_relaxed);
		atomic_store_explicit(&slot->lost[i], 0, memory_order_relaxed);
	}
	for (unsigned int i = 0; i < NR_DEGRADED_REASONS; i++)
		atomic_store_explicit(&slot->degraded[i], 0, memory_order_relaxed);
	for (unsigned int i = 0; i < EVENTS_MAX; i++) {
		atomic_store_explicit(&slot->samples[i], 0, memory_order_relaxed);
		atomic_store_explicit(&slot->weight[i], 0, memory_order_relaxed);
		atomic_store_explicit(&slot->refused[i], 0, memory_order_relaxed);
		slot->last_tick_ns[i] = slot->doubted_at[i] = 0;
		slot->first[i] = slot->early[i] = slot->counted[i] = 0;
		slot->since_sample[i] = 0;
		slot->event_fds[i] = slot->own_fds[i] = -1;
	}
	atomic_store_explicit(&slot->overrun, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->left_out, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->handler_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->arming, ARM_NONE, memory_order_relaxed);
	atomic_store_explicit(&slot->busy, 0, memory_order_relaxed);
	slot->busy_event = slot->nested = 0;
	slot->busy_at = slot->stuck_at = slot->stuck = 0;
	slot->arm_error = 0;
	slot->generation++;
	slot->pid = slot->tid = 0;
	slot->program_blocks = 0;
	slot->previous_depth = 0;
	atomic_store_explicit(&slot->first_period, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->first_seen, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->whole_asked, WHOLE_NONE, memory_order_relaxed);
	slot->whole_again_ns = 0;
	slot->start_ns = slot->end_ns = 0;
	slot->cpu_ns = slot->voluntary_switches = 0;
	slot->heartbeat_seen = 0;
	slot->heartbeat_ticks = 0;
	slot->timer = -1;
	slot->start_routine = slot->start_argument = 0;
	memset(slot->name, 0, sizeof(slot->name));
}

struct slot *slot_claim(struct memory *memory)
{
	struct memory_header *header = memory->header;
	uint32_t nr_slots = header->sizes.nr_slots;
	uint32_t first = atomic_load_explicit(&header->slots_hint, memory_order_relaxed) % nr_slots;

	for (uint32_t i = 0; i < nr_slots; i++) {
		uint32_t index = (uint32_t)(((uint64_t)first + i) % nr_slots);
		struct slot *slot = &memory->slots[index];
		uint32_t state = atomic_load_explicit(&slot->state, memory_order_relaxed);

		if (state != SLOT_FREE || !atomic_compare_exchange_strong_explicit(
						  &slot->state, &state, SLOT_CLAIMED,
						  memory_order_acquire, memory_order_relaxed))
			continue;
		atomic_store_explicit(&header->slots_hint, index + 1, memory_order_relaxed);
		clear_slot(slot);
		return slot;
	}
	return NULL;
}

void slot_activate(struct memory *memory, struct slot *slot, uint32_t pid, uint32_t tid,
		   uint64_t now_ns)
{
	(void)memory;
	slot->pid = pid;
	slot->tid = tid;
	slot->start_ns = now_ns;
	atomic_store_explicit(&slot->state, SLOT_ACTIVE, memory_order_release);
}

/* Low slots are used again first: few streams, few pages. A lost race costs a longer search. */
static void give_slot_back(struct memory *memory, struct slot *slot)
{
	_Atomic uint32_t *hint = &memory->header->slots_hint;
	uint32_t index = slot_index(memory, slot);

	atomic_store_explicit(&slot->state, SLOT_FREE, memory_order_release);
	if (index < atomic_load_explicit(hint, memory_order_relaxed))
		atomic_store_explicit(hint, index, memory_order_relaxed);
}

void slot_unclaim(struct memory *memory, struct slot *slot)
{
	give_slot_back(memory, slot);
}

static uint64_t total_lost(const struct slot *slot)
{
	uint64_t total = slot->lost_before;

	for (unsigned int i = 0; i < NR_LOSS_REASONS; i++)
		total += atomic_load_explicit(&slot->lost[i], memory_order_relaxed);
	return total;
}

static struct packet_control *open_packet(struct memory *memory, struct slot *slot,
					  uint64_t time_ns)
{
	uint32_t link = packet_stack_pop(memory, &memory->header->free_packets);
	struct packet_control *packet;

	if (!link)
		return NULL;
	packet = memory_packet(memory, link - 1);
	packet->slot = slot_index(memory, slot);
	packet->seq = slot->packet_seq++;
	packet->pid = slot->pid;
	packet->tid = slot->tid;
	packet->samples = 0;
	packet->begin_ns = time_ns;
	packet->lost = total_lost(slot);
	atomic_store_explicit(&packet->end_ns, time_ns, memory_order_relaxed);
	atomic_store_explicit(&packet->used, CTF_PREFIX_BYTES, memory_order_relaxed);
	atomic_store_explicit(&packet->state, PACKET_OPEN, memory_order_release);
	slot->packet = link;
	return packet;
}

/* Returns false where others were faster too often: the packet stays with the slot, full. */
static bool close_packet(struct memory *memory, struct slot *slot)
{
	uint32_t index = slot->packet - 1;

	atomic_store_explicit(&memory_packet(memory, index)->state, PACKET_FULL,
			      memory_order_release);
	if (!packet_stack_push(memory, &memory->header->full_packets, index))
		return false;
	atomic_signal_fence(memory_order_seq_cst);
	slot->packet = 0;
	memory_ring(memory);
	return true;
}

/* The slot's open packet with room for a sample, or NULL. */
static struct packet_control *packet_with_room(struct memory *memory, struct slot *slot,
					       uint64_t time_ns)
{
	struct packet_control *packet;

	if (slot->packet) {
		packet = memory_packet(memory, slot->packet - 1);
		if (atomic_load_explicit(&packet->state, memory_order_relaxed) == PACKET_OPEN)
			return packet;
		if (!close_packet(memory, slot))
			return NULL;
	}
	return open_packet(memory, slot, time_ns);
}

bool slot_write_sample(struct memory *memory, struct slot *slot, uint32_t event, uint64_t time_ns,
		       uint32_t native, uint32_t python, uint64_t count)
{
	uint32_t capacity =
		memory->header->sizes.packet_bytes - (uint32_t)sizeof(struct packet_control);
	uint64_t time = time_ns > slot->last_ns ? time_ns : slot->last_ns;
	struct packet_control *packet = packet_with_room(memory, slot, time);
	uint64_t previous;
	uint32_t used;

	if (!packet) {
		slot_refuse(slot, event, LOSS_BUFFER_FULL);
		return false;
	}
	previous = packet->samples ? slot->last_ns : packet->begin_ns;
	used = atomic_load_explicit(&packet->used, memory_order_relaxed);
	used += (uint32_t)ctf_put_sample(packet_ctf(packet) + used, event, time, previous, native,
					 python, count);
	packet->samples++;
	slot->last_ns = time;
	/* The end first: who sees an event below `used` sees an end that is not before it. */
	atomic_store_explicit(&packet->end_ns, time, memory_order_relaxed);
	atomic_store_explicit(&packet->used, used, memory_order_release);
	slot_add(&slot->samples[event], 1);
	slot_add(&slot->weight[event], count);
	if (used + CTF_SAMPLE_MAX_BYTES > capacity)
		close_packet(memory, slot);
	return true;
}

void slot_end(struct memory *memory, struct slot *slot, uint64_t now_ns)
{
	/* Where even this fails, slot_free() hands the packet over. */
	for (unsigned int i = 0; slot->packet && i < END_PUSHES; i++)
		close_packet(memory, slot);
	slot->end_ns = now_ns;
	atomic_store_explicit(&slot->state, SLOT_ENDED, memory_order_release);
	memory_ring(memory);
}

void slot_lose(struct slot *slot, enum loss_reason reason, uint64_t number)
{
	/* Atomic although the slot has one thread: a nested tick may come in between. */
	atomic_fetch_add_explicit(&slot->lost[reason], number, memory_order_relaxed);
}

void slot_refuse(struct slot *slot, uint32_t event, enum loss_reason reason)
{
	slot_lose(slot, reason, 1);
	atomic_fetch_add_explicit(&slot->refused[event], 1, memory_order_relaxed);
}

void slot_recover(struct memory *memory, struct slot *slot)
{
	const struct packet_control *packet;

	slot->previous_depth = 0;
	if (!slot->packet)
		return;
	/* Pushed already, it is the recorder's or another slot's by now. */
	packet = memory_packet(memory, slot->packet - 1);
	if (atomic_load_explicit(&packet->state, memory_order_acquire) != PACKET_OPEN ||
	    packet->slot != slot_index(memory, slot))
		slot->packet = 0;
}

void slot_degrade(struct slot *slot, enum degraded_reason reason)
{
	slot_add(&slot->degraded[reason], 1);
}

void memory_ring(struct memory *memory)
{
	int saved_errno = errno;

	atomic_fetch_add_explicit(&memory->header->doorbell, 1, memory_order_release);
	/* Not FUTEX_PRIVATE: the recorder waits in another process. */
	syscall(SYS_futex, &memory->header->doorbell, FUTEX_WAKE, 1, NULL, NULL, 0);
	errno = saved_errno;
}

void memory_add_process(struct memory *memory, enum process_how how, uint32_t pid, uint32_t ppid,
			uint64_t now_ns, const char *command)
{
	_Atomic uint32_t *used = &memory->header->processes_used;
	struct process *process;
	uint32_t index;

	/* The tail passes the bound, and so counts, but stops short of wrapping. */
	if (atomic_load_explicit(used, memory_order_relaxed) > INT32_MAX)
		return;
	index = atomic_fetch_add_explicit(used, 1, memory_order_relaxed);
	if (index >= memory->header->sizes.nr_processes)
		return;
	process = &memory->processes[index];
	process->how = how;
	process->pid = pid;
	process->ppid = ppid;
	process->start_ns = now_ns;
	for (size_t i = 0; command && command[i] && i + 1 < sizeof(process->command); i++)
		process->command[i] = command[i];
	atomic_store_explicit(&process->committed, 1, memory_order_release);
}
