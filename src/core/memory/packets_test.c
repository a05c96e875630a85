/* SPDX-License-Identifier: MIT */
#include "core/memory/memory_fixture_test.h"

#include <errno.h>
#include <pthread.h>

#include "core/memory/packet_stack.h"

#define T0 0x123456789abcdull /* any time */

static struct packet_control *open_packet_of(struct fixture *fixture, struct slot *slot)
{
	assert_int_not_equal(slot->packet, 0);
	return memory_packet(&fixture->memory, slot->packet - 1);
}

static void write_samples(struct fixture *fixture, struct slot *slot, uint32_t number)
{
	for (uint32_t i = 0; i < number; i++)
		assert_true(slot_write_sample(&fixture->memory, slot, 0, T0 + i, 0, i, 1));
}

/* Every byte of the stream, as ctf.h documents it. */
static void test_packets__samples_byte_for_byte(void **state)
{
	static const uint8_t expected[] = {
		/* event 0 at T0: id 0 | low 27 bits of T0 << 5 */
		0xa0, 0x79, 0x35, 0xf1, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0,
		/* event 2, wide: id 5, 7 ns later */
		0x85, 0x7a, 0x35, 0xf1, 4, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0,
		/* event 1: id 2, 2^27 - 1 ns later: still compact */
		0x62, 0x7a, 0x35, 0xf1, 6, 0, 0, 0, 7, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
		/* event 1: 2^27 ns later: extended */
		31, 2, 0, 0, 0, 0xd3, 0xab, 0x89, 0x77, 0x45, 0x23, 1, 0, 8, 0, 0, 0, 9, 0, 0, 0,
		10, 0, 0, 0};
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	struct slot *slot = fixture_thread(&fixture, 1, 1);
	struct packet_control *packet;
	uint64_t time = T0;

	(void)state;
	assert_true(slot_write_sample(m, slot, 0, time, 1, 2, 3));
	time += 7;
	assert_true(slot_write_sample(m, slot, 2, time, 4, 5, 1ull << 32));
	time += (1u << 27) - 1;
	assert_true(slot_write_sample(m, slot, 1, time, 6, 7, UINT32_MAX));
	time += 1u << 27;
	assert_true(slot_write_sample(m, slot, 1, time, 8, 9, 10));
	packet = open_packet_of(&fixture, slot);
	assert_int_equal(atomic_load(&packet->used), CTF_PREFIX_BYTES + sizeof(expected));
	assert_memory_equal(packet_ctf(packet) + CTF_PREFIX_BYTES, expected, sizeof(expected));
	assert_int_equal(packet->samples, 4);
	assert_int_equal(packet->begin_ns, T0);
	assert_int_equal(atomic_load(&packet->end_ns), time);
	assert_int_equal(atomic_load(&packet->state), PACKET_OPEN);
	assert_int_equal(atomic_load(&slot->samples[0]), 1);
	assert_int_equal(atomic_load(&slot->samples[1]), 2);
	assert_int_equal(atomic_load(&slot->samples[2]), 1);
	assert_int_equal(atomic_load(&slot->weight[1]), UINT32_MAX + 10ull);
	assert_int_equal(atomic_load(&slot->weight[2]), 1ull << 32);
	fixture_release(&fixture);
}

/* After a long gap a new packet's first event is compact: the packet's begin is its time. */
static void test_packets__first_event_is_at_the_begin(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	struct slot *slot = fixture_thread(&fixture, 1, 1);
	struct packet_control *packet;

	(void)state;
	write_samples(&fixture, slot, SAMPLES_PER_4K_PACKET);
	assert_int_equal(slot->packet, 0);
	assert_true(slot_write_sample(m, slot, 0, T0 + (1ull << 40), 0, 0, 1));
	packet = open_packet_of(&fixture, slot);
	assert_int_equal(atomic_load(&packet->used), CTF_PREFIX_BYTES + 16);
	assert_int_equal(packet->begin_ns, T0 + (1ull << 40));
	assert_int_equal(packet->seq, 1);
	fixture_release(&fixture);
}

static void test_packets__time_never_goes_back_in_a_stream(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	struct slot *slot = fixture_thread(&fixture, 1, 1);
	struct packet_control *packet;

	(void)state;
	assert_true(slot_write_sample(m, slot, 0, T0, 0, 0, 1));
	assert_true(slot_write_sample(m, slot, 0, T0 - 1000, 0, 0, 1));
	packet = open_packet_of(&fixture, slot);
	assert_int_equal(atomic_load(&packet->end_ns), T0);
	assert_int_equal(atomic_load(&packet->used), CTF_PREFIX_BYTES + 32);
	assert_memory_equal(packet_ctf(packet) + CTF_PREFIX_BYTES,
			    packet_ctf(packet) + CTF_PREFIX_BYTES + 16, 16);
	slot_end(m, slot, T0);
	slot_free(m, slot);
	/* nor for the next thread of the slot */
	assert_ptr_equal(fixture_thread(&fixture, 2, 2), slot);
	assert_true(slot_write_sample(m, slot, 0, T0 - 5000, 0, 0, 1));
	assert_int_equal(open_packet_of(&fixture, slot)->begin_ns, T0);
	assert_int_equal(atomic_load(&open_packet_of(&fixture, slot)->end_ns), T0);
	fixture_release(&fixture);
}

/* Closed exactly when the largest event would not fit, and not sooner. */
static void test_packets__closed_when_the_largest_event_does_not_fit(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	struct slot *slot = fixture_thread(&fixture, 1, 1);
	uint32_t rings = atomic_load(&m->header->doorbell);
	uint32_t taken[4];
	uint32_t used;

	(void)state;
	write_samples(&fixture, slot, SAMPLES_PER_4K_PACKET - 1);
	assert_int_equal(atomic_load(&open_packet_of(&fixture, slot)->state), PACKET_OPEN);
	assert_int_equal(memory_take_full(m, taken), 0);
	assert_int_equal(atomic_load(&m->header->doorbell), rings);
	/* The last one is as large as can be. */
	assert_true(slot_write_sample(m, slot, 7, T0 + (1ull << 50), 1, 1, UINT64_MAX));
	assert_int_equal(slot->packet, 0);
	assert_int_equal(atomic_load(&m->header->doorbell), rings + 1);
	assert_int_equal(memory_take_full(m, taken), 1);
	used = atomic_load(&memory_packet(m, taken[0])->used);
	assert_true(used <= 4096 - 64);
	assert_true(used + CTF_SAMPLE_MAX_BYTES > 4096 - 64);
	assert_int_equal(atomic_load(&memory_packet(m, taken[0])->state), PACKET_FULL);
	fixture_release(&fixture);
}

static void test_packets__no_free_packet_is_a_counted_loss(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	struct slot *slot = fixture_thread(&fixture, 1, 1);
	uint32_t taken[4];

	(void)state;
	write_samples(&fixture, slot, 4 * SAMPLES_PER_4K_PACKET);
	for (int i = 0; i < 3; i++)
		assert_false(slot_write_sample(m, slot, 0, T0 + 1000, 0, 0, 9));
	assert_int_equal(atomic_load(&slot->lost[LOSS_BUFFER_FULL]), 3);
	assert_int_equal(atomic_load(&slot->samples[0]), 4 * SAMPLES_PER_4K_PACKET);
	assert_int_equal(atomic_load(&slot->weight[0]), 4 * SAMPLES_PER_4K_PACKET);
	assert_int_equal(memory_take_full(m, taken), 4);
	packet_free(m, taken[2]);
	/* It goes on, in the same stream, and says what was lost before. */
	assert_true(slot_write_sample(m, slot, 0, T0 + 1000, 0, 0, 9));
	assert_int_equal(slot->packet, taken[2] + 1);
	assert_int_equal(open_packet_of(&fixture, slot)->seq, 4);
	assert_int_equal(open_packet_of(&fixture, slot)->lost, 3);
	fixture_release(&fixture);
}

/* Left by a longjmp in the middle: the packet may be the recorder's, or another's, by now. */
static void test_packets__a_slot_that_recovers_forgets_what_is_not_its_own(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	struct slot *slot = fixture_thread(&fixture, 1, 1), *other = fixture_thread(&fixture, 1, 2);
	uint32_t link;

	(void)state;
	write_samples(&fixture, slot, 1);
	link = slot->packet;
	slot->previous_depth = 3;
	slot_recover(m, slot);
	assert_int_equal(slot->packet, link);
	assert_int_equal(slot->previous_depth, 0);
	write_samples(&fixture, other, 1);
	slot->packet = other->packet;
	slot_recover(m, slot);
	assert_int_equal(slot->packet, 0);
	slot->packet = link;
	atomic_store(&memory_packet(m, link - 1)->state, PACKET_FULL);
	slot_recover(m, slot);
	assert_int_equal(slot->packet, 0);
	slot_recover(m, slot);
	assert_int_equal(slot->packet, 0);
	fixture_release(&fixture);
}

static void test_packets__losses_of_a_stream_never_go_back(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	struct slot *slot = fixture_thread(&fixture, 1, 1);

	(void)state;
	slot_lose(slot, LOSS_THROTTLED, 5);
	slot_lose(slot, LOSS_NESTED, 2);
	slot_end(m, slot, T0);
	slot_free(m, slot);
	assert_ptr_equal(fixture_thread(&fixture, 2, 2), slot);
	slot_lose(slot, LOSS_NESTED, 1);
	assert_true(slot_write_sample(m, slot, 0, T0, 0, 0, 1));
	assert_int_equal(open_packet_of(&fixture, slot)->lost, 8);
	assert_int_equal(atomic_load(&slot->lost[LOSS_NESTED]), 1);
	fixture_release(&fixture);
}

/* Three slots interleaved, one of them used by two threads: sorted by slot, then sequence. */
static void test_packets__taken_in_order_over_reuse(void **state)
{
	struct memory_sizes sizes = small_sizes();
	struct fixture fixture;
	struct memory *m = &fixture.memory;
	struct slot *first, *second, *third;
	static const uint32_t slots[] = {0, 0, 0, 1, 1, 2}, seqs[] = {0, 1, 2, 0, 1, 0},
			      tids[] = {10, 10, 40, 20, 20, 30};
	uint32_t taken[8];

	(void)state;
	sizes.nr_packets = 8;
	fixture = fixture_make(&sizes);
	first = fixture_thread(&fixture, 1, 10);
	second = fixture_thread(&fixture, 1, 20);
	third = fixture_thread(&fixture, 1, 30);
	write_samples(&fixture, third, SAMPLES_PER_4K_PACKET);
	write_samples(&fixture, first, SAMPLES_PER_4K_PACKET);
	write_samples(&fixture, second, SAMPLES_PER_4K_PACKET);
	write_samples(&fixture, first, 5);
	slot_end(m, first, T0);
	slot_free(m, first);
	assert_ptr_equal(fixture_thread(&fixture, 1, 40), first);
	write_samples(&fixture, first, 5);
	write_samples(&fixture, second, 1);
	slot_end(m, second, T0);
	slot_end(m, first, T0);
	assert_int_equal(memory_take_full(m, taken), 6);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(memory_packet(m, taken[i])->slot, slots[i]);
		assert_int_equal(memory_packet(m, taken[i])->seq, seqs[i]);
		assert_int_equal(memory_packet(m, taken[i])->tid, tids[i]);
	}
	assert_int_equal(memory_take_full(m, taken), 0);
	fixture_release(&fixture);
}

static void test_packets__every_packet_goes_round(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	struct slot *slot = fixture_thread(&fixture, 1, 1);
	uint32_t seen = 0, taken[4];

	(void)state;
	for (uint32_t round = 0; round < 10; round++) {
		write_samples(&fixture, slot, 4 * SAMPLES_PER_4K_PACKET);
		assert_false(slot_write_sample(m, slot, 0, T0, 0, 0, 1));
		assert_int_equal(memory_take_full(m, taken), 4);
		for (uint32_t i = 0; i < 4; i++) {
			assert_int_equal(memory_packet(m, taken[i])->seq, 4 * round + i);
			seen |= 1u << taken[i];
			packet_free(m, taken[i]);
		}
		assert_int_equal(seen, 15);
	}
	fixture_release(&fixture);
}

/* The most that leaves room for the largest event, and four bytes more. */
static void test_packets__closing_is_exact(void **state)
{
	static const uint32_t narrow[] = {241, 240}, wide[] = {2, 3}, open[] = {1, 0};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct fixture fixture = fixture_small();
		struct slot *slot = fixture_thread(&fixture, 1, 1);

		write_samples(&fixture, slot, narrow[i]);
		for (uint32_t j = 0; j < wide[i]; j++)
			assert_true(
				slot_write_sample(&fixture.memory, slot, 0, T0, 0, 0, UINT64_MAX));
		assert_int_equal(slot->packet != 0, open[i]);
		assert_int_equal(atomic_load(&memory_packet(&fixture.memory, 0)->used),
				 4096 - 64 - CTF_SAMPLE_MAX_BYTES - 3 + 4 * i);
		fixture_release(&fixture);
	}
}

/*
 * Who looked at the head before a packet was popped and pushed again must not succeed with what
 * it saw: the head is another one although the same packet is on top.
 */
static void test_packets__heads_never_come_back(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	_Atomic uint64_t *stack = &m->header->free_packets;
	uint64_t before = atomic_load(stack);

	(void)state;
	assert_int_equal(packet_stack_pop(m, stack), 1);
	assert_int_equal(packet_stack_pop(m, stack), 2);
	assert_true(packet_stack_push(m, stack, 0));
	assert_int_equal((uint32_t)atomic_load(stack), (uint32_t)before);
	assert_int_not_equal(atomic_load(stack), before);
	assert_int_equal(packet_stack_pop(m, stack), 1);
	assert_int_equal(packet_stack_pop(m, stack), 3);
	assert_int_equal(packet_stack_pop(m, stack), 4);
	assert_int_equal(packet_stack_pop(m, stack), 0);
	fixture_release(&fixture);
}

/* A scribbled chain, a cycle and a wild number, ends the taking. */
static void test_packets__taking_is_bounded(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	struct slot *slot = fixture_thread(&fixture, 1, 1);
	uint32_t taken[4];

	(void)state;
	write_samples(&fixture, slot, SAMPLES_PER_4K_PACKET);
	atomic_store(&memory_packet(m, 0)->next, (uint32_t)-1); /* 2 - 1: itself */
	assert_int_equal(memory_take_full(m, taken), 4);
	atomic_store(&m->header->full_packets, 5);
	assert_int_equal(memory_take_full(m, taken), 0);
	atomic_store(&m->header->free_packets, 5);
	assert_false(slot_write_sample(m, slot, 0, T0, 0, 0, 1));
	fixture_release(&fixture);
}

static void test_packets__prefix_is_completed(void **state)
{
	static const uint8_t uuid[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	struct slot *slot;
	struct packet_control *packet;
	struct ctf_packet_prefix prefix;

	(void)state;
	slot_claim(m);
	slot = fixture_thread(&fixture, 77, 78);
	slot_lose(slot, LOSS_NESTED, 6);
	assert_true(slot_write_sample(m, slot, 0, T0, 0, 0, 1));
	assert_true(slot_write_sample(m, slot, 0, T0 + 5, 0, 0, 1));
	packet = open_packet_of(&fixture, slot);
	packet_complete(m, packet, atomic_load(&packet->used), uuid, "a name of 20 letters");
	memcpy(&prefix, packet_ctf(packet), sizeof(prefix));
	assert_int_equal(prefix.magic, 0xC1FC1FC1u);
	assert_memory_equal(prefix.uuid, uuid, 16);
	assert_int_equal(prefix.stream_id, 0);
	assert_int_equal(prefix.stream_instance_id, 1);
	assert_int_equal(prefix.timestamp_begin, T0);
	assert_int_equal(prefix.timestamp_end, T0 + 5);
	assert_int_equal(prefix.content_bits, 8 * (104 + 32));
	assert_int_equal(prefix.packet_bits, 8 * (104 + 32));
	assert_int_equal(prefix.packet_seq_num, 0);
	assert_int_equal(prefix.events_discarded, 6);
	assert_int_equal(prefix.vpid, 77);
	assert_int_equal(prefix.vtid, 78);
	assert_memory_equal(prefix.procname, "a name of 20 le", 16);
	/* and the events behind it are as they were */
	assert_int_equal(packet_ctf(packet)[CTF_PREFIX_BYTES], (uint8_t)(T0 << 5));
	fixture_release(&fixture);
}

static void test_packets__open_packet_of_a_dead_thread(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	struct slot *slot = fixture_thread(&fixture, 1, 1);
	struct slot *other = fixture_thread(&fixture, 1, 2);
	struct packet_control *packet;

	(void)state;
	assert_null(slot_open_packet(m, slot));
	write_samples(&fixture, slot, 3);
	packet = slot_open_packet(m, slot);
	assert_ptr_equal(packet, open_packet_of(&fixture, slot));
	/* Killed between the push and forgetting it: drained, freed, then another's. */
	packet_free(m, packet_index(m, packet));
	assert_null(slot_open_packet(m, slot));
	write_samples(&fixture, other, 1);
	assert_ptr_equal(open_packet_of(&fixture, other), packet);
	assert_null(slot_open_packet(m, slot));
	assert_ptr_equal(slot_open_packet(m, other), packet);
	slot->packet = 5;
	assert_null(slot_open_packet(m, slot));
	fixture_release(&fixture);
}

/* What a thread could not hand over, the recorder's slot_free() does: nothing is lost. */
static void test_packets__free_hands_over_what_was_left(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	struct slot *slot = fixture_thread(&fixture, 1, 1);
	uint32_t taken[4];

	(void)state;
	write_samples(&fixture, slot, 3);
	atomic_store(&slot->state, SLOT_ENDED);
	slot_free(m, slot);
	assert_int_equal(memory_take_full(m, taken), 1);
	assert_int_equal(memory_packet(m, taken[0])->samples, 3);
	assert_int_equal(slot->packet, 0);
	fixture_release(&fixture);
}

/* A packet whose push was overtaken stays with its slot and goes with the next sample. */
static void test_packets__a_push_that_failed_is_tried_again(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	struct slot *slot = fixture_thread(&fixture, 1, 1);
	uint32_t taken[4];

	(void)state;
	write_samples(&fixture, slot, 3);
	atomic_store(&open_packet_of(&fixture, slot)->state, PACKET_FULL);
	write_samples(&fixture, slot, 2);
	assert_int_equal(open_packet_of(&fixture, slot)->samples, 2);
	assert_int_equal(open_packet_of(&fixture, slot)->seq, 1);
	assert_int_equal(memory_take_full(m, taken), 1);
	assert_int_equal(memory_packet(m, taken[0])->samples, 3);
	fixture_release(&fixture);
}

static void *ring(void *memory)
{
	memory_ring(memory);
	return NULL;
}

static void test_packets__doorbell_wakes(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	pthread_t thread;

	(void)state;
	assert_int_equal(memory_wait(m, 1, UINT64_MAX / 4), 0); /* not @seen: at once */
	assert_int_equal(memory_wait(m, 0, 1000), 0);		/* nobody rings: the time passes */
	assert_int_equal(pthread_create(&thread, NULL, ring, m), 0);
	assert_int_equal(memory_wait(m, 0, 100ull * 1000000000), 1);
	pthread_join(thread, NULL);
	errno = 42;
	memory_ring(m);
	assert_int_equal(errno, 42);
	assert_int_equal(atomic_load(&m->header->doorbell), 2);
	fixture_release(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packets__samples_byte_for_byte),
		cmocka_unit_test(test_packets__first_event_is_at_the_begin),
		cmocka_unit_test(test_packets__time_never_goes_back_in_a_stream),
		cmocka_unit_test(test_packets__closed_when_the_largest_event_does_not_fit),
		cmocka_unit_test(test_packets__no_free_packet_is_a_counted_loss),
		cmocka_unit_test(test_packets__a_slot_that_recovers_forgets_what_is_not_its_own),
		cmocka_unit_test(test_packets__losses_of_a_stream_never_go_back),
		cmocka_unit_test(test_packets__taken_in_order_over_reuse),
		cmocka_unit_test(test_packets__every_packet_goes_round),
		cmocka_unit_test(test_packets__closing_is_exact),
		cmocka_unit_test(test_packets__heads_never_come_back),
		cmocka_unit_test(test_packets__taking_is_bounded),
		cmocka_unit_test(test_packets__prefix_is_completed),
		cmocka_unit_test(test_packets__open_packet_of_a_dead_thread),
		cmocka_unit_test(test_packets__free_hands_over_what_was_left),
		cmocka_unit_test(test_packets__a_push_that_failed_is_tried_again),
		cmocka_unit_test(test_packets__doorbell_wakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
