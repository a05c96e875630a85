/* SPDX-License-Identifier: MIT */
#include "core/memory/memory_fixture_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>

#define RACERS	     4
#define RACE_CHAINS  200
#define RACE_DEPTH   20
#define RACE_NODES   (RACE_CHAINS * RACE_DEPTH)
#define RACE_CODES   500
#define BRINK_ROUNDS 100000
#define BRINK_SPINS  1000 /* before the processor is given away */
#define NOTHING_LEFT 4096 /* attempts at a full table */
#define WIDE	     8	  /* children that hang from their parent; the others are in the index */

static uint64_t python_at(uint64_t position)
{
	return node_where(NODE_PYTHON, 0, position);
}

static void test_table__equal_frames_are_one_node(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	uint32_t root = table_node(m, 0, 3, python_at(9));
	uint32_t child = table_node(m, root, 3, python_at(9));

	(void)state;
	assert_int_equal(root, 1);
	assert_int_equal(child, 2);
	assert_int_equal(table_node(m, 0, 3, python_at(9)), root);
	assert_int_equal(table_node(m, root, 3, python_at(9)), child);
	assert_int_equal(m->nodes[child].parent, root);
	assert_int_equal(m->nodes[child].owner, 3);
	assert_int_equal(atomic_load(&m->nodes[child].where), python_at(9));
	assert_int_equal(atomic_load(&m->header->nodes_used), 3);
	fixture_release(&fixture);
}

static void test_table__any_difference_is_another_node(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	uint32_t nodes[] = {
		table_node(m, 0, 3, python_at(9)),
		table_node(m, 1, 3, python_at(9)),
		table_node(m, 0, 4, python_at(9)),
		table_node(m, 0, 3, python_at(10)),
		table_node(m, 0, 3, node_where(NODE_PYTHON, NODE_FLAG_ENTRY, 9)),
		table_node(m, 0, 3, node_where(NODE_NATIVE, 0, 9)),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++)
		assert_int_equal(nodes[i], i + 1);
	fixture_release(&fixture);
}

static void test_table__full_of_nodes(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	uint32_t nr_nodes = m->header->sizes.nr_nodes;

	(void)state;
	for (uint32_t i = 1; i < nr_nodes; i++)
		assert_int_equal(table_node(m, 0, 0, python_at(i)), i);
	for (uint32_t i = 0; i < NOTHING_LEFT; i++)
		assert_int_equal(table_node(m, 0, 0, python_at(nr_nodes + i)), 0);
	/* What is there is still found, and the tail did not run away. */
	for (uint32_t i = 1; i < nr_nodes; i++)
		assert_int_equal(table_node(m, 0, 0, python_at(i)), i);
	assert_int_equal(atomic_load(&m->header->nodes_used), nr_nodes);
	fixture_release(&fixture);
}

/* Children beyond the chain are in the index, and found there. */
static void test_table__wide_parents(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	uint32_t in_index = 0;

	(void)state;
	for (uint32_t i = 1; i <= 3 * WIDE; i++)
		assert_int_equal(table_node(m, 0, 0, python_at(i)), i);
	for (uint32_t i = 1; i <= 3 * WIDE; i++)
		assert_int_equal(table_node(m, 0, 0, python_at(i)), i);
	for (uint32_t i = 0; i < m->header->sizes.node_index_slots; i++)
		in_index += atomic_load(&m->node_index[i]) != 0;
	assert_int_equal(in_index, 2 * WIDE);
	fixture_release(&fixture);
}

/* A scribbled index without an empty place: the probe ends. */
static void test_table__probe_is_bounded(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	uint32_t node = 0;

	(void)state;
	for (uint32_t i = 1; i <= WIDE + 1; i++)
		node = table_node(m, 0, 0, python_at(i));
	for (uint32_t i = 0; i < m->header->sizes.node_index_slots; i++)
		atomic_store(&m->node_index[i], node);
	assert_int_equal(table_node(m, 0, 0, python_at(WIDE + 1)), node);
	assert_int_equal(table_node(m, 0, 0, python_at(WIDE + 2)), 0);
	assert_int_equal(atomic_load(&m->header->nodes_used), WIDE + 2);
	fixture_release(&fixture);
}

static uint32_t add_code(struct memory *m, uint64_t identity, uint64_t text_bytes)
{
	uint64_t at;
	uint8_t *text;
	uint32_t id = table_reserve_code(m, text_bytes, &text, &at);

	if (!id)
		return 0;
	assert_ptr_equal(text, m->text + at);
	assert_true(text_bytes <= UINT32_MAX);
	memset(text, (int)identity, text_bytes);
	m->codes[id].name_at = at;
	return table_commit_code(m, id, identity);
}

static void test_table__codes_by_identity(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	uint32_t first, second;

	(void)state;
	assert_int_equal(table_find_code(m, 1000), 0);
	first = add_code(m, 1000, 10);
	second = add_code(m, 1001, 20);
	assert_int_equal(first, 1);
	assert_int_equal(second, 2);
	assert_int_equal(table_find_code(m, 1000), first);
	assert_int_equal(table_find_code(m, 1001), second);
	assert_int_equal(m->codes[second].identity, 1001);
	assert_int_equal(atomic_load(&m->codes[second].committed), 1);
	assert_int_equal(m->codes[second].name_at, 10);
	assert_int_equal(m->text[9], 1000 & 255);
	assert_int_equal(m->text[10], 1001 & 255);
	/* Whoever comes second with the same identity gets the first one's number. */
	assert_int_equal(add_code(m, 1000, 5), first);
	fixture_release(&fixture);
}

static void test_table__a_code_that_is_left_is_not_committed(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	uint64_t at;
	uint8_t *text;
	uint32_t left = table_reserve_code(m, 8, &text, &at);

	(void)state;
	assert_int_equal(left, 1);
	assert_int_equal(atomic_load(&m->codes[left].committed), 0);
	assert_int_equal(add_code(m, 5, 8), 2);
	assert_int_equal(table_find_code(m, 0), 0);
	fixture_release(&fixture);
}

static void test_table__full_of_codes(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;
	uint32_t nr_codes = m->header->sizes.nr_codes;

	(void)state;
	for (uint32_t i = 1; i < nr_codes; i++)
		assert_int_equal(add_code(m, 1000 + i, 1), i);
	for (uint32_t i = 0; i < NOTHING_LEFT; i++)
		assert_int_equal(add_code(m, 5000 + i, 1), 0);
	assert_int_equal(atomic_load(&m->header->codes_used), nr_codes);
	assert_int_equal(table_find_code(m, 1000 + nr_codes - 1), nr_codes - 1);
	fixture_release(&fixture);
}

static void test_table__full_of_text(void **state)
{
	struct fixture fixture = fixture_small();
	struct memory *m = &fixture.memory;

	(void)state;
	assert_int_equal(add_code(m, 1, 4000), 1);
	assert_int_equal(add_code(m, 2, 97), 0);
	assert_int_equal(add_code(m, 3, UINT64_MAX), 0);
	assert_int_equal(add_code(m, 4, UINT64_MAX - 3999), 0);
	/* Too large a text takes nothing from those that fit. */
	assert_int_equal(atomic_load(&m->header->codes_used), 2);
	assert_int_equal(add_code(m, 5, 96), 2);
	assert_int_equal(add_code(m, 6, 1), 0);
	assert_int_equal(add_code(m, 7, 0), 3);
	fixture_release(&fixture);
}

struct racer {
	struct memory *memory;
	pthread_barrier_t *start;
	uint32_t number;
	uint32_t nodes[RACE_NODES];
	uint32_t codes[RACE_CODES];
};

/* All racers intern the same chains; neighbours share their upper half. */
static void race(struct racer *racer)
{
	for (uint32_t i = 0; i < RACE_CODES; i++)
		racer->codes[i] = add_code(racer->memory, i + 1, 3);
	for (uint32_t chain = 0; chain < RACE_CHAINS; chain++) {
		uint32_t parent = 0;

		for (uint32_t depth = 0; depth < RACE_DEPTH; depth++) {
			uint32_t branch = depth < RACE_DEPTH / 2 ? chain / 4 : chain;

			parent = table_node(racer->memory, parent, racer->codes[depth],
					    python_at(branch * 64 + depth + 1));
			racer->nodes[chain * RACE_DEPTH + depth] = parent;
		}
	}
}

static void *race_thread(void *argument)
{
	struct racer *racer = argument;

	pthread_barrier_wait(racer->start);
	race(racer);
	return NULL;
}

static struct fixture race_fixture(void)
{
	struct memory_sizes sizes = small_sizes();

	sizes.nr_nodes = 32768;
	sizes.node_index_slots = 65536;
	sizes.nr_codes = 4096;
	sizes.code_index_slots = 8192;
	sizes.text_bytes = 1 << 20;
	return fixture_make(&sizes);
}

static void check_nodes(const struct memory *m)
{
	uint32_t used = atomic_load(&m->header->nodes_used);

	for (uint32_t i = 1; i < used; i++) {
		assert_int_not_equal(atomic_load(&m->nodes[i].where), 0);
		assert_true(m->nodes[i].parent < i);
		assert_int_equal(atomic_load(&m->codes[m->nodes[i].owner].committed), 1);
	}
}

static void test_table__threads_agree(void **state)
{
	struct fixture fixture = race_fixture();
	struct racer *racers = calloc(RACERS, sizeof(*racers));
	pthread_t threads[RACERS];
	pthread_barrier_t start;

	(void)state;
	assert_non_null(racers);
	pthread_barrier_init(&start, NULL, RACERS);
	for (uint32_t i = 0; i < RACERS; i++) {
		racers[i].memory = &fixture.memory;
		racers[i].start = &start;
		assert_int_equal(pthread_create(&threads[i], NULL, race_thread, &racers[i]), 0);
	}
	for (uint32_t i = 0; i < RACERS; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < RACERS; i++) {
		assert_memory_equal(racers[i].nodes, racers[0].nodes, sizeof(racers[0].nodes));
		assert_memory_equal(racers[i].codes, racers[0].codes, sizeof(racers[0].codes));
	}
	for (uint32_t i = 0; i < RACE_NODES; i++)
		assert_int_not_equal(racers[0].nodes[i], 0);
	for (uint32_t i = 0; i < RACE_CODES; i++)
		assert_int_equal(fixture.memory.codes[racers[0].codes[i]].identity, i + 1);
	check_nodes(&fixture.memory);
	pthread_barrier_destroy(&start);
	free(racers);
	fixture_release(&fixture);
}

struct brink {
	struct memory *memory;
	_Atomic uint32_t *turns; /* arrivals: at the start and at the end of rounds */
	uint32_t number;
	uint32_t nodes[BRINK_ROUNDS];
};

static void wait_for_turn(_Atomic uint32_t *turn, uint32_t wanted)
{
	for (uint32_t spins = 0; atomic_load(turn) < wanted; spins++)
		if (spins > BRINK_SPINS)
			sched_yield();
}

/* Every round both want the last node of a table that is empty but for its tail. */
static void *brink_thread(void *argument)
{
	struct brink *brink = argument;
	struct memory *m = brink->memory;

	for (uint32_t round = 0; round < BRINK_ROUNDS; round++) {
		if (atomic_fetch_add(&brink->turns[0], 1) == 3 * round + 1) {
			memset(m->node_index, 0,
			       m->header->sizes.node_index_slots * sizeof(*m->node_index));
			atomic_store(&m->nodes[0].first_child, 0);
			atomic_store(&m->header->nodes_used, m->header->sizes.nr_nodes - 1);
			atomic_fetch_add(&brink->turns[0], 1);
		}
		wait_for_turn(&brink->turns[0], 3 * (round + 1));
		brink->nodes[round] = table_node(m, 0, brink->number, python_at(1));
		atomic_fetch_add(&brink->turns[1], 1);
		wait_for_turn(&brink->turns[1], 2 * (round + 1));
	}
	return NULL;
}

static void test_table__nobody_passes_the_bound(void **state)
{
	struct memory_sizes sizes = small_sizes();
	struct brink brinks[2] = {0};
	_Atomic uint32_t turns[2] = {0};
	pthread_t threads[2];
	struct fixture fixture;

	(void)state;
	sizes.nr_nodes = 8;
	sizes.node_index_slots = 16;
	fixture = fixture_make(&sizes);
	for (uint32_t i = 0; i < 2; i++) {
		brinks[i].memory = &fixture.memory;
		brinks[i].turns = turns;
		brinks[i].number = i;
		assert_int_equal(pthread_create(&threads[i], NULL, brink_thread, &brinks[i]), 0);
	}
	for (uint32_t i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t round = 0; round < BRINK_ROUNDS; round++) {
		uint32_t a = brinks[0].nodes[round], b = brinks[1].nodes[round];

		assert_int_equal(a + b, sizes.nr_nodes - 1);
		assert_true(a == 0 || b == 0);
	}
	fixture_release(&fixture);
}

/* The children's results come back through the text region's end. */
static void test_table__processes_agree(void **state)
{
	struct fixture fixture = race_fixture();
	struct racer *here = calloc(1, sizeof(*here));
	size_t result_bytes = sizeof(here->nodes);
	uint8_t *results = fixture.memory.text + (1 << 19);
	pid_t children[2];

	(void)state;
	assert_non_null(here);
	here->memory = &fixture.memory;
	for (int i = 0; i < 2; i++) {
		children[i] = fork();
		assert_true(children[i] >= 0);
		if (children[i] == 0) {
			race(here);
			memcpy(results + i * result_bytes, here->nodes, result_bytes);
			_exit(0);
		}
	}
	race(here);
	for (int i = 0; i < 2; i++) {
		int status;

		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
		assert_memory_equal(results + i * result_bytes, here->nodes, result_bytes);
	}
	check_nodes(&fixture.memory);
	free(here);
	fixture_release(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table__equal_frames_are_one_node),
		cmocka_unit_test(test_table__any_difference_is_another_node),
		cmocka_unit_test(test_table__full_of_nodes),
		cmocka_unit_test(test_table__wide_parents),
		cmocka_unit_test(test_table__probe_is_bounded),
		cmocka_unit_test(test_table__codes_by_identity),
		cmocka_unit_test(test_table__a_code_that_is_left_is_not_committed),
		cmocka_unit_test(test_table__full_of_codes),
		cmocka_unit_test(test_table__full_of_text),
		cmocka_unit_test(test_table__threads_agree),
		cmocka_unit_test(test_table__nobody_passes_the_bound),
		cmocka_unit_test(test_table__processes_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
