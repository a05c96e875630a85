/* SPDX-License-Identifier: MIT */
/* A memory, a slot and the fake interpreter, ready to be ticked by hand. */
#ifndef PATHPROF_AGENT_CAPTURE_CAPTURE_FIXTURE_TEST_H
#define PATHPROF_AGENT_CAPTURE_CAPTURE_FIXTURE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/capture/capture.h"
#include "agent/capture/fake_cpython_test.h"
#include "core/event/ctf.h"

#define RACERS 3

static struct capture capture; /* a nested tick has no argument */
static struct slot *slot;
static int fd;

static const struct memory_sizes sizes = {
	.nr_slots = RACERS + 1,
	.nr_packets = 16,
	.packet_bytes = 4096,
	.nr_nodes = 1u << 16,
	.node_index_slots = 1u << 17,
	.nr_codes = 1024,
	.code_index_slots = 2048,
	.nr_modules = 1,
	.text_bytes = 1u << 16,
};

static inline int set_up(void **state)
{
	(void)state;
	memset(&capture, 0, sizeof(capture));
	memset(&fake, 0, sizeof(fake));
	assert_int_equal(memory_create(&sizes, &capture.memory, &fd, NULL), 0);
	atomic_store(&capture.memory.header->recording, 1);
	capture.cpython.layout = 1; /* not looked into */
	slot = slot_claim(&capture.memory);
	slot_activate(&capture.memory, slot, 100, 101, 1);
	fake.thread_state = 1;
	for (uint32_t i = 0; i < FAKE_CODES; i++)
		fake.codes[i] = (struct fake_code){.identity = 1000 + i,
						   .name = "function",
						   .file = "file.py",
						   .line_table = "table",
						   .first_line = 10 * i};
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	memory_unmap(&capture.memory);
	close(fd);
	return 0;
}

static inline void call(uint32_t code, uint32_t position)
{
	memmove(&fake.frames[1], &fake.frames[0], fake.nr_frames * sizeof(fake.frames[0]));
	fake.frames[0] =
		(struct cpython_frame){.code_address = fake_address(code), .position = position};
	fake.nr_frames++;
}

static inline void call_from_native(uint32_t code, uint32_t position)
{
	call(code, position);
	fake.frames[0].entry = 1;
}

static inline void tick_at(uint64_t time_ns)
{
	struct tick tick = {.time_ns = time_ns, .count = 1};

	capture_tick(&capture, slot, &tick);
}

static inline uint32_t last_node(void)
{
	const uint8_t *end;
	uint32_t node;

	assert_int_not_equal(slot->packet, 0);
	end = packet_ctf(memory_packet(&capture.memory, slot->packet - 1)) +
	      atomic_load(&memory_packet(&capture.memory, slot->packet - 1)->used);
	memcpy(&node, end - 8, sizeof(node)); /* native, python, count */
	return node;
}

/* Ticks once, checks that a sample came of it, and returns its Python node. */
static inline uint32_t tick(void)
{
	uint64_t before = atomic_load(&slot->samples[0]);
	uint32_t taken[16], nr_taken;

	tick_at(slot->last_ns + 1);
	assert_int_equal(atomic_load(&slot->samples[0]), before + 1);
	if (!slot->packet) {
		/* The sample closed its packet. */
		struct packet_control *packet;
		uint32_t node;

		nr_taken = memory_take_full(&capture.memory, taken);
		assert_int_equal(nr_taken, 1);
		packet = memory_packet(&capture.memory, taken[0]);
		memcpy(&node, packet_ctf(packet) + atomic_load(&packet->used) - 8, 4);
		packet_free(&capture.memory, taken[0]);
		return node;
	}
	return last_node();
}

static inline const struct node *node_at(uint32_t number)
{
	assert_true(number < atomic_load(&capture.memory.header->nodes_used));
	return &capture.memory.nodes[number];
}

static inline enum node_kind kind_of(uint32_t number)
{
	return (enum node_kind)(atomic_load(&node_at(number)->where) >> 56);
}

static inline uint32_t nodes_used(void)
{
	return atomic_load(&capture.memory.header->nodes_used);
}

/* From here on any look-up of a node finds nothing: it shows as a new node. */
static inline void forget_index(void)
{
	memset(capture.memory.node_index, 0, sizes.node_index_slots * sizeof(uint32_t));
}

static inline void assert_python(uint32_t number, uint64_t identity, uint32_t position, bool entry)
{
	const struct node *node = node_at(number);

	assert_int_equal(atomic_load(&node->where),
			 node_where(NODE_PYTHON, entry ? NODE_FLAG_ENTRY : 0, position));
	assert_int_equal(capture.memory.codes[node->owner].identity, identity);
	assert_int_equal(atomic_load(&capture.memory.codes[node->owner].committed), 1);
}

#define CAPTURE_TEST(name) cmocka_unit_test_setup_teardown(test_capture__##name, set_up, tear_down)

#endif
