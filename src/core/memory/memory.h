/* SPDX-License-Identifier: MIT */
/*
 * The recording's shared memory: making, mapping, and the two sides' operations.
 *
 * memory.c     layout, create, map               both
 * writer.c     slots and packets, agent's side   Signal-safe
 * table.c      interning nodes, codes, modules   Signal-safe
 * reader.c     drain packets, free slots        recorder's side
 */
#ifndef PATHPROF_CORE_MEMORY_MEMORY_H
#define PATHPROF_CORE_MEMORY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/errbuf.h"
#include "core/memory/memory_types.h"

/* One mapping of the memory. Plain pointers into it; valid until memory_unmap(). */
struct memory {
	struct memory_header *header;
	struct slot *slots;
	uint8_t *packets;
	struct node *nodes;
	_Atomic uint32_t *node_index;
	struct code *codes;
	_Atomic uint32_t *code_index;
	struct module *modules;
	struct process *processes;
	uint8_t *text;
};

/* ---- both sides: memory.c ---- */

/**
 * memory_sizes_for - bounds of the regions for a total
 * @total_bytes: what --memory said; at least MEMORY_BYTES_MIN
 * The sum of the regions is at most @total_bytes.
 */
struct memory_sizes memory_sizes_for(uint64_t total_bytes);
#define MEMORY_BYTES_MIN     (8ull << 20)
#define MEMORY_BYTES_DEFAULT (256ull << 20) /* sparse: a small recording touches a few MiB */

/**
 * memory_create - make the memfd, size it, map it, initialise header and free list
 * @ret_fd: the memfd, close-on-exec, owned by the caller
 * Returns 0 or a negative errno with a sentence in @err.
 */
int memory_create(const struct memory_sizes *sizes, struct memory *ret_memory, int *ret_fd,
		  struct errbuf *err);

/**
 * memory_map - map a memfd that memory_create() made
 * Validates magic, version, sizes and that every region lies inside the file, once; after that
 * the offsets are trusted. Not in core dumps (MADV_DONTDUMP).
 * Returns 0, or a negative errno: -EINVAL where it is no such memory or another version's.
 */
int memory_map(int fd, struct memory *ret_memory, struct errbuf *err);

/** memory_unmap - undo memory_create() or memory_map(); the memfd is the caller's */
void memory_unmap(struct memory *memory);

/**
 * memory_prefault - have the pages of the start of each region at hand before they are needed
 * (MADV_POPULATE_WRITE; a kernel without it is no error). @pages_per_region bounds the cost.
 */
void memory_prefault(struct memory *memory, unsigned int pages_per_region);

/* How far the growing regions were made ready: bytes from the region's start, zero at first. */
struct memory_ahead {
	uint64_t nodes, codes, code_index, text;
};

/**
 * memory_prefault_ahead - keep pages at hand beyond the tails of the definition table
 * @ahead: the recorder's; for each later call the same
 *
 * The first touch of a page of the memfd costs a handler some 12 us in a virtual machine, mapping
 * one that is there half a microsecond. Called by the recorder whenever it wakes; a call that
 * finds enough at hand is four loads.
 */
void memory_prefault_ahead(struct memory *memory, struct memory_ahead *ahead);

static inline struct packet_control *memory_packet(const struct memory *memory, uint32_t index)
{
	return (struct packet_control *)(memory->packets +
					 (size_t)index * memory->header->sizes.packet_bytes);
}

static inline uint8_t *packet_ctf(struct packet_control *packet)
{
	return (uint8_t *)(packet + 1);
}

/* ---- the agent's side: writer.c. All Signal-safe. ---- */

/**
 * slot_claim - take a free slot for a thread: SLOT_FREE -> SLOT_CLAIMED, fields cleared
 * Returns NULL when all are taken (count LOSS_NO_SLOT per lost tick in the header).
 */
struct slot *slot_claim(struct memory *memory);

/** slot_activate - the thread runs: sets pid, tid, start_ns, then SLOT_ACTIVE */
void slot_activate(struct memory *memory, struct slot *slot, uint32_t pid, uint32_t tid,
		   uint64_t now_ns);

/**
 * slot_end - the thread's last act: closes its packet, sets end_ns, SLOT_ENDED
 * cpu_ns and voluntary_switches must be set before. The slot must not be touched afterwards.
 */
void slot_end(struct memory *memory, struct slot *slot, uint64_t now_ns);

/** slot_unclaim - give back a slot whose thread was never made */
void slot_unclaim(struct memory *memory, struct slot *slot);

uint32_t slot_index(const struct memory *memory, const struct slot *slot);

/**
 * slot_write_sample - append a sample to the slot's open packet, taking a new one when full
 * @time_ns: raised to the slot's last time where it is before it
 *
 * Counts the sample, its weight, and LOSS_BUFFER_FULL itself. Closing a packet rings the doorbell.
 * Returns false: lost. Cost: the 16-byte event, one release store; every few hundred samples a
 * packet exchange.
 */
bool slot_write_sample(struct memory *memory, struct slot *slot, uint32_t event, uint64_t time_ns,
		       uint32_t native, uint32_t python, uint64_t count);

/** slot_add - add to a counter that the slot's thread alone writes and others may read */
static inline void slot_add(_Atomic uint64_t *counter, uint64_t number)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + number,
			      memory_order_relaxed);
}

/**
 * slot_lose, slot_degrade - count; slot_lose() also from a nested tick
 * slot_refuse - an overflow of @event came and leaves no sample: lost, and the event's
 */
void slot_lose(struct slot *slot, enum loss_reason reason, uint64_t number);
void slot_refuse(struct slot *slot, uint32_t event, enum loss_reason reason);
void slot_degrade(struct slot *slot, enum degraded_reason reason);

/**
 * slot_recover - the thread left its handler in the middle of a sample, for good
 * What may be half written is forgotten: the last stack, a packet that was being closed.
 */
void slot_recover(struct memory *memory, struct slot *slot);

/** memory_ring - bump the doorbell and wake the recorder (one futex system call) */
void memory_ring(struct memory *memory);

/** memory_add_process - list a child; silently counted when the list is full */
void memory_add_process(struct memory *memory, enum process_how how, uint32_t pid, uint32_t ppid,
			uint64_t now_ns, const char *command);

/* ---- interning: table.c. All Signal-safe; any number of threads and processes at once. ---- */

/**
 * table_node - the node for (parent, owner, where), made if it is new
 * Returns 0 when the table is full or the bounded probe failed (a loss: LOSS_TABLE_FULL).
 * Two threads that intern the same frame at once get the same node.
 */
uint32_t table_node(struct memory *memory, uint32_t parent, uint32_t owner, uint64_t where);

/** table_find_code - the id of the code with this identity, or 0 */
uint32_t table_find_code(struct memory *memory, uint64_t identity);

/** table_prefetch_code - ask for the lines that table_find_code() will look at first */
void table_prefetch_code(const struct memory *memory, uint64_t identity);

/**
 * table_reserve_code - room for a new code: a code record and text for its bytes
 * Returns the id with *ret_text pointing to @text_bytes writable bytes at *ret_text_at in the
 * text region; 0: full. The caller fills the record (all but identity, committed) and calls
 * table_commit_code(), or leaves it: an uncommitted record is skipped by readers.
 */
uint32_t table_reserve_code(struct memory *memory, uint64_t text_bytes, uint8_t **ret_text,
			    uint64_t *ret_text_at);

/**
 * table_commit_code - publish the record @id under @identity
 * Returns the id to use: @id, or that of another thread that was first with equal identity.
 */
uint32_t table_commit_code(struct memory *memory, uint32_t id, uint64_t identity);

/* ---- the recorder's side: reader.c ---- */

/**
 * memory_take_full - take all PACKET_FULL packets at once, sorted by slot, then sequence
 * Fills @indices (room for sizes.nr_packets) and returns their number. Each is the recorder's
 * until packet_free().
 */
uint32_t memory_take_full(struct memory *memory, uint32_t *indices);

/** packet_free - give a packet back to the agents */
void packet_free(struct memory *memory, uint32_t index);

/**
 * packet_complete - fill in the CTF prefix of a packet
 * @used: committed bytes (acquire-loaded by the caller; for an open packet a snapshot)
 */
void packet_complete(struct memory *memory, struct packet_control *packet, uint32_t used,
		     const uint8_t uuid[16], const char *procname);

/**
 * memory_wait - sleep until the doorbell is not @seen any more, or @timeout_ns passed
 * Returns the doorbell's present value.
 */
uint32_t memory_wait(struct memory *memory, uint32_t seen, uint64_t timeout_ns);

/**
 * slot_open_packet - the packet that a thread which runs no more had not handed over
 * For slots in SLOT_ENDED or of a dead process, after the full packets were taken and freed.
 * Returns NULL where there is none; else the caller's until packet_free().
 */
struct packet_control *slot_open_packet(const struct memory *memory, const struct slot *slot);

/** packet_index - the number that memory_packet() takes */
uint32_t packet_index(const struct memory *memory, const struct packet_control *packet);

/** slot_free - after SLOT_ENDED was drained: SLOT_FREE again */
void slot_free(struct memory *memory, struct slot *slot);

#endif
