/* SPDX-License-Identifier: MIT */
#include "core/memory/memory_fixture_test.h"

#include <pthread.h>
#include <string.h>

#define CLAIMERS       4
#define CLAIMS_EACH    20000
#define CLAIM_ATTEMPTS 1000000 /* of which CLAIMS_EACH succeed, all being too few */

static void test_slots__claim_all_then_none(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	struct slot *slots[8];

	(void)state;
	for (uint32_t i = 0; i < 8; i++) {
		slots[i] = slot_claim(m);
		assert_non_null(slots[i]);
		assert_int_equal(slot_index(m, slots[i]), i);
		assert_int_equal(atomic_load(&slots[i]->state), SLOT_CLAIMED);
	}
	assert_null(slot_claim(m));
	slot_unclaim(m, slots[5]);
	slot_unclaim(m, slots[2]);
	slot_unclaim(m, slots[7]);
	/* The lowest first: few streams. */
	assert_ptr_equal(slot_claim(m), slots[2]);
	assert_ptr_equal(slot_claim(m), slots[5]);
	assert_ptr_equal(slot_claim(m), slots[7]);
	assert_null(slot_claim(m));
	fixture_release(&fixture);
}

static void test_slots__short_threads_use_one_slot(void **state)
{
	struct fixture fixture = fixture_small();

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		struct slot *slot = fixture_thread(&fixture, 1, i);

		assert_int_equal(slot_index(&fixture.memory, slot), 0);
		assert_int_equal(slot->generation, i + 1);
		slot_end(&fixture.memory, slot, i);
		slot_free(&fixture.memory, slot);
	}
	fixture_release(&fixture);
}

static void test_slots__life(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	struct slot *slot = slot_claim(m);

	(void)state;
	assert_int_equal(slot->timer, -1);
	slot_activate(m, slot, 11, 12, 13);
	assert_int_equal(atomic_load(&slot->state), SLOT_ACTIVE);
	assert_int_equal(slot->pid, 11);
	assert_int_equal(slot->tid, 12);
	assert_int_equal(slot->start_ns, 13);
	assert_int_equal(slot->end_ns, 0);
	slot_end(m, slot, 14);
	assert_int_equal(atomic_load(&slot->state), SLOT_ENDED);
	assert_int_equal(slot->end_ns, 14);
	assert_int_equal(slot->pid, 11);
	slot_free(m, slot);
	assert_int_equal(atomic_load(&slot->state), SLOT_FREE);
	fixture_release(&fixture);
}

/* Everything of the former thread, all bytes set, but what belongs to the stream or the memo. */
static void test_slots__claim_clears_what_is_the_threads(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	struct slot *slot = &m->slots[0];

	(void)state;
	memset(slot, 0x11, sizeof(*slot));
	for (unsigned int i = 0; i < NR_LOSS_REASONS; i++)
		atomic_store(&slot->lost[i], i);
	slot->lost_before = 1000;
	slot->packet = 0;
	atomic_store(&slot->state, SLOT_FREE);
	assert_ptr_equal(slot_claim(m), slot);
	for (unsigned int i = 0; i < NR_LOSS_REASONS; i++)
		assert_int_equal(atomic_load(&slot->lost[i]), 0);
	for (unsigned int i = 0; i < NR_DEGRADED_REASONS; i++)
		assert_int_equal(atomic_load(&slot->degraded[i]), 0);
	for (unsigned int i = 0; i < EVENTS_MAX; i++) {
		assert_int_equal(atomic_load(&slot->samples[i]), 0);
		assert_int_equal(atomic_load(&slot->weight[i]), 0);
	}
	assert_int_equal(slot->lost_before, 1000 + NR_LOSS_REASONS * (NR_LOSS_REASONS - 1) / 2);
	assert_int_equal(atomic_load(&slot->overrun), 0);
	assert_int_equal(atomic_load(&slot->handler_ns), 0);
	assert_int_equal(atomic_load(&slot->busy), 0);
	assert_int_equal(atomic_load(&slot->arming), ARM_NONE);
	assert_int_equal(slot->arm_error, 0);
	assert_int_equal(slot->pid, 0);
	assert_int_equal(slot->tid, 0);
	assert_int_equal(slot->program_blocks, 0);
	assert_int_equal(slot->previous_depth, 0);
	for (unsigned int i = 0; i < EVENTS_MAX; i++)
		assert_int_equal(slot->last_tick_ns[i], 0);
	assert_int_equal(slot->start_ns, 0);
	assert_int_equal(slot->end_ns, 0);
	assert_int_equal(slot->cpu_ns, 0);
	assert_int_equal(slot->voluntary_switches, 0);
	assert_int_equal(slot->heartbeat_seen, 0);
	assert_int_equal(slot->heartbeat_ticks, 0);
	assert_int_equal(slot->start_routine, 0);
	assert_int_equal(slot->start_argument, 0);
	assert_string_equal(slot->name, "");
	assert_int_equal(slot->timer, -1);
	assert_int_equal(slot->generation, 0x11111112);
	assert_int_equal(slot->packet_seq, 0x11111111);
	assert_int_equal(slot->last_ns, 0x1111111111111111);
	assert_int_equal(slot->walk_epoch, 0x11111111);
	/* Cheap: the arrays are left as they are. */
	assert_int_equal(slot->stack[FRAMES_MAX].node, 0x11111111);
	fixture_release(&fixture);
}

struct claimer {
	struct memory *memory;
	uint32_t number;
	uint32_t claims;
	uint32_t wrong;
};

static void *claim_and_release(void *argument)
{
	struct claimer *claimer = argument;

	for (uint32_t i = 0; i < CLAIM_ATTEMPTS && claimer->claims < CLAIMS_EACH; i++) {
		struct slot *slot = slot_claim(claimer->memory);

		if (!slot)
			continue;
		claimer->claims++;
		slot->tid = claimer->number;
		slot->cpu_ns = i;
		if (slot->tid != claimer->number || slot->cpu_ns != i)
			claimer->wrong++;
		slot_unclaim(claimer->memory, slot);
	}
	return NULL;
}

/* Under ThreadSanitizer also: a slot's plain fields are handed over by its state. */
static void test_slots__contended_claims_are_exclusive(void **state)
{
	struct memory_sizes sizes = small_sizes();
	struct claimer claimers[CLAIMERS] = {0};
	pthread_t threads[CLAIMERS];
	struct fixture fixture;
	uint32_t claims = 0, generations = 0;

	(void)state;
	sizes.nr_slots = CLAIMERS - 1;
	fixture = fixture_make(&sizes);
	for (uint32_t i = 0; i < CLAIMERS; i++) {
		claimers[i].memory = &fixture.memory;
		claimers[i].number = i + 1;
		assert_int_equal(pthread_create(&threads[i], NULL, claim_and_release, &claimers[i]),
				 0);
	}
	for (uint32_t i = 0; i < CLAIMERS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(claimers[i].wrong, 0);
		assert_true(claimers[i].claims > 0);
		claims += claimers[i].claims;
	}
	for (uint32_t i = 0; i < sizes.nr_slots; i++)
		generations += fixture.memory.slots[i].generation;
	assert_int_equal(generations, claims);
	fixture_release(&fixture);
}

static void test_slots__losses_and_degradations(void **state)
{
	struct fixture fixture = fixture_small();
	struct slot *slot = fixture_thread(&fixture, 1, 1);

	(void)state;
	slot_lose(slot, LOSS_DELAYED, 3);
	slot_lose(slot, LOSS_DELAYED, 4);
	slot_degrade(slot, DEGRADED_TRUNCATED);
	slot_degrade(slot, DEGRADED_TRUNCATED);
	assert_int_equal(atomic_load(&slot->lost[LOSS_DELAYED]), 7);
	assert_int_equal(atomic_load(&slot->lost[LOSS_MERGED]), 0);
	assert_int_equal(atomic_load(&slot->degraded[DEGRADED_TRUNCATED]), 2);
	assert_int_equal(atomic_load(&slot->degraded[DEGRADED_UNREADABLE]), 0);
	fixture_release(&fixture);
}

static void test_slots__processes_are_listed_up_to_the_bound(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	char command[200];

	(void)state;
	memset(command, 'c', sizeof(command) - 1);
	command[sizeof(command) - 1] = 0;
	memory_add_process(m, PROCESS_EXECED, 5, 4, 99, "/bin/true");
	memory_add_process(m, PROCESS_SPAWNED, 6, 4, 100, command);
	memory_add_process(m, PROCESS_FORKED, 7, 4, 101, NULL);
	memory_add_process(m, PROCESS_FORKED, 8, 4, 102, "");
	memset(&m->processes[4], 0x5a, sizeof(m->processes[4])); /* still in the page */
	memory_add_process(m, PROCESS_FORKED, 9, 4, 103, command);
	assert_int_equal(atomic_load(&m->header->processes_used), 5);
	assert_int_equal(m->processes[4].pid, 0x5a5a5a5a);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(atomic_load(&m->processes[i].committed), 1);
		assert_int_equal(m->processes[i].pid, 5 + i);
		assert_int_equal(m->processes[i].ppid, 4);
		assert_int_equal(m->processes[i].start_ns, 99 + i);
	}
	assert_int_equal(m->processes[0].how, PROCESS_EXECED);
	assert_string_equal(m->processes[0].command, "/bin/true");
	assert_int_equal(strlen(m->processes[1].command), 63);
	assert_string_equal(m->processes[2].command, "");
	fixture_release(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slots__claim_all_then_none),
		cmocka_unit_test(test_slots__short_threads_use_one_slot),
		cmocka_unit_test(test_slots__life),
		cmocka_unit_test(test_slots__claim_clears_what_is_the_threads),
		cmocka_unit_test(test_slots__contended_claims_are_exclusive),
		cmocka_unit_test(test_slots__losses_and_degradations),
		cmocka_unit_test(test_slots__processes_are_listed_up_to_the_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
