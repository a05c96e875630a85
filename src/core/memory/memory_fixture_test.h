/* SPDX-License-Identifier: MIT */
/* A small memory for tests, and a reader of the events in a packet. */
#ifndef PATHPROF_CORE_MEMORY_MEMORY_FIXTURE_TEST_H
#define PATHPROF_CORE_MEMORY_MEMORY_FIXTURE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/event/ctf.h"
#include "core/memory/memory.h"

#define SAMPLES_PER_4K_PACKET ((4096 - 64 - CTF_PREFIX_BYTES - CTF_SAMPLE_MAX_BYTES) / 16 + 1)

struct fixture {
	struct memory memory;
	int fd;
};

static inline struct memory_sizes small_sizes(void)
{
	return (struct memory_sizes){
		.nr_slots = 8,
		.nr_packets = 4,
		.packet_bytes = 4096,
		.nr_nodes = 1024,
		.node_index_slots = 2048,
		.nr_codes = 64,
		.code_index_slots = 128,
		.nr_modules = 4,
		.nr_processes = 4,
		.text_bytes = 4096,
	};
}

static inline struct fixture fixture_make(const struct memory_sizes *sizes)
{
	struct fixture fixture;
	struct errbuf err;

	assert_int_equal(memory_create(sizes, &fixture.memory, &fixture.fd, &err), 0);
	return fixture;
}

static inline struct fixture fixture_small(void)
{
	struct memory_sizes sizes = small_sizes();

	return fixture_make(&sizes);
}

static inline void fixture_release(struct fixture *fixture)
{
	memory_unmap(&fixture->memory);
	close(fixture->fd);
}

static inline struct slot *fixture_thread(struct fixture *fixture, uint32_t pid, uint32_t tid)
{
	struct slot *slot = slot_claim(&fixture->memory);

	assert_non_null(slot);
	slot_activate(&fixture->memory, slot, pid, tid, 1);
	return slot;
}

struct event {
	uint64_t time_ns;
	uint32_t id;
	uint32_t native;
	uint32_t python;
	uint64_t count;
};

/* Decodes the event at *at as a reader of CTF does; moves *at and *time_ns on. */
static inline struct event read_event(const uint8_t *bytes, size_t *at, uint64_t *time_ns)
{
	struct event event = {0};
	uint32_t compact;

	memcpy(&compact, bytes + *at, 4);
	event.id = compact & 31;
	if (event.id == CTF_ID_EXTENDED) {
		memcpy(&event.id, bytes + *at + 1, 4);
		memcpy(time_ns, bytes + *at + 5, 8);
		*at += 13;
	} else {
		*time_ns += ((compact >> 5) - (uint32_t)*time_ns) & ((1u << 27) - 1);
		*at += 4;
	}
	event.time_ns = *time_ns;
	memcpy(&event.native, bytes + *at, 4);
	memcpy(&event.python, bytes + *at + 4, 4);
	memcpy(&event.count, bytes + *at + 8, event.id & 1 ? 8 : 4);
	*at += event.id & 1 ? 16 : 12;
	return event;
}

#endif
