/* SPDX-License-Identifier: MIT */
/*
 * Writers and a draining recorder at once. Every attempt is a sample in a packet or a counted
 * loss, streams are in order, and slots go round. Run under ThreadSanitizer too.
 */
#include "core/memory/memory_fixture_test.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define WRITERS		  3
#define LIVES		  40   /* threads that each writer is, one after the other */
#define SAMPLES_PER_LIFE  2000 /* several packets */
#define ATTEMPTS	  ((uint64_t)WRITERS * LIVES * SAMPLES_PER_LIFE)
#define RECORDER_SLEEP_NS 50000000ull

struct stream {
	uint32_t next_seq;
	uint64_t last_ns;
	uint64_t lost;
};

struct recorder {
	struct memory *memory;
	struct stream *streams;
	uint32_t *taken;
	uint64_t samples; /* seen in packets */
	uint64_t sum;	  /* of their counts */
	uint64_t counted; /* by the slots */
	uint64_t lost;
	uint32_t lives;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void *write_lives(void *argument)
{
	struct memory *m = argument;

	for (uint32_t life = 0; life < LIVES; life++) {
		struct slot *slot = NULL;

		while (!slot)
			slot = slot_claim(m);
		slot_activate(m, slot, 1, life, now_ns());
		for (uint32_t i = 0; i < SAMPLES_PER_LIFE; i++)
			slot_write_sample(m, slot, 0, now_ns(), life, i, i + 1);
		slot_end(m, slot, now_ns());
	}
	return NULL;
}

static void read_packet(struct recorder *recorder, const struct packet_control *packet)
{
	const uint8_t *bytes = packet_ctf((struct packet_control *)packet);
	struct stream *stream = &recorder->streams[packet->slot];
	uint32_t used = atomic_load(&packet->used);
	uint64_t time_ns = packet->begin_ns;
	uint32_t samples = 0;

	assert_int_equal(packet->seq, stream->next_seq);
	assert_true(packet->begin_ns >= stream->last_ns);
	assert_true(packet->lost >= stream->lost);
	for (size_t at = CTF_PREFIX_BYTES; at < used; samples++) {
		uint64_t before = time_ns;
		struct event event = read_event(bytes, &at, &time_ns);

		assert_true(at <= used);
		assert_int_equal(event.id, 0);
		assert_int_equal(event.native, packet->tid);
		assert_int_equal(event.count, event.python + 1);
		assert_true(time_ns >= before);
		recorder->sum += event.count;
	}
	assert_int_equal(samples, packet->samples);
	assert_int_equal(time_ns, atomic_load(&packet->end_ns));
	recorder->samples += samples;
	stream->next_seq++;
	stream->last_ns = time_ns;
	stream->lost = packet->lost;
}

/* What was ended before the packets were taken has left nothing behind them. */
static void drain(struct recorder *recorder)
{
	struct memory *m = recorder->memory;
	uint32_t nr_slots = m->header->sizes.nr_slots, nr_taken;
	bool ended[64];

	for (uint32_t i = 0; i < nr_slots; i++)
		ended[i] = atomic_load(&m->slots[i].state) == SLOT_ENDED;
	nr_taken = memory_take_full(m, recorder->taken);
	for (uint32_t i = 0; i < nr_taken; i++) {
		read_packet(recorder, memory_packet(m, recorder->taken[i]));
		packet_free(m, recorder->taken[i]);
	}
	for (uint32_t i = 0; i < nr_slots; i++) {
		if (!ended[i])
			continue;
		recorder->counted += atomic_load(&m->slots[i].samples[0]);
		recorder->lost += atomic_load(&m->slots[i].lost[LOSS_BUFFER_FULL]);
		recorder->lives++;
		assert_int_equal(m->slots[i].packet, 0);
		slot_free(m, &m->slots[i]);
	}
}

static void record(uint32_t nr_slots, uint32_t nr_packets, struct recorder *recorder)
{
	struct memory_sizes sizes = small_sizes();
	pthread_t threads[WRITERS];
	struct fixture fixture;
	uint32_t seen = 0;

	sizes.nr_slots = nr_slots;
	sizes.nr_packets = nr_packets;
	fixture = fixture_make(&sizes);
	recorder->memory = &fixture.memory;
	recorder->streams = calloc(nr_slots, sizeof(*recorder->streams));
	recorder->taken = calloc(nr_packets, sizeof(*recorder->taken));
	assert_non_null(recorder->streams);
	assert_non_null(recorder->taken);
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_lives, &fixture.memory),
				 0);
	while (recorder->lives < WRITERS * LIVES) {
		seen = memory_wait(&fixture.memory, seen, RECORDER_SLEEP_NS);
		drain(recorder);
	}
	for (int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	free(recorder->streams);
	free(recorder->taken);
	fixture_release(&fixture);
}

/* Room for everything that can be under way: nothing is lost at all. */
static void test_drain__nothing_is_lost_where_there_is_room(void **state)
{
	struct recorder recorder = {0};

	(void)state;
	record(4, 4096, &recorder);
	assert_int_equal(recorder.lost, 0);
	assert_int_equal(recorder.samples, ATTEMPTS);
	assert_int_equal(recorder.counted, ATTEMPTS);
	assert_int_equal(recorder.sum,
			 (uint64_t)WRITERS * LIVES * SAMPLES_PER_LIFE * (SAMPLES_PER_LIFE + 1) / 2);
}

/* Two packets for three writers: losses are certain, and all are counted. */
static void test_drain__samples_and_losses_are_the_attempts(void **state)
{
	struct recorder recorder = {0};

	(void)state;
	record(3, 2, &recorder);
	assert_true(recorder.lost > 0);
	assert_true(recorder.samples > 0);
	assert_int_equal(recorder.samples, recorder.counted);
	assert_int_equal(recorder.samples + recorder.lost, ATTEMPTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_drain__nothing_is_lost_where_there_is_room),
		cmocka_unit_test(test_drain__samples_and_losses_are_the_attempts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
