/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/cpython/layouts.h"
#include "core/cpython/scan_state.h"

#define NR_STATES 4

/* A runtime with one interpreter, whose thread states run nothing. */
static struct {
	uint64_t runtime[0x300 / 8], interpreter[0x100 / 8], states[NR_STATES][0x200 / 8];
	struct cpython cpython;
	struct state_notes notes;
} world;

static uint64_t state_at(unsigned int number)
{
	return (uint64_t)(uintptr_t)world.states[number];
}

static void put(uint64_t *structure, uint16_t offset, const void *pointer)
{
	structure[offset / 8] = (uint64_t)(uintptr_t)pointer;
}

static void set_thread(unsigned int number, uint64_t tid)
{
	world.states[number][cpython_layout_311.state_native_id / 8] = tid;
}

static int set_up(void **state)
{
	const struct cpython_layout *layout = &cpython_layout_311;

	(void)state;
	memset(&world, 0, sizeof(world));
	world.cpython.runtime = (uint64_t)(uintptr_t)world.runtime;
	put(world.runtime, layout->runtime_first_interpreter, world.interpreter);
	put(world.interpreter, layout->interpreter_first_state, world.states[0]);
	for (unsigned int i = 0; i < NR_STATES; i++) {
		if (i + 1 < NR_STATES)
			put(world.states[i], layout->state_next, world.states[i + 1]);
		put(world.states[i], layout->state_cframe,
		    (uint8_t *)world.states[i] + layout->state_root_cframe);
		set_thread(i, 100 + i);
	}
	return 0;
}

static uint64_t scan_for(uint32_t tid)
{
	const struct state_scan scan = {.reader = {.kind = READER_DIRECT},
					.cpython = &world.cpython,
					.layout = &cpython_layout_311,
					.tid = tid,
					.notes = &world.notes};
	bool holds_lock;

	return state_scan(&scan, 0, &holds_lock);
}

static void test_scan_state__notes_whose_states_it_came_by(void **state)
{
	(void)state;
	assert_int_equal(state_noted(&world.notes, 102), 0);
	scan_for(101);
	for (unsigned int i = 0; i < NR_STATES; i++)
		assert_int_equal(state_noted(&world.notes, 100 + i), state_at(i));
	assert_int_equal(state_noted(&world.notes, 104), 0);
	assert_int_equal(state_noted(&world.notes, 100 + STATE_NOTES), 0);
}

static void test_scan_state__a_later_scan_notes_anew(void **state)
{
	(void)state;
	scan_for(101);
	set_thread(0, 102);
	set_thread(2, 100);
	scan_for(101);
	assert_int_equal(state_noted(&world.notes, 100), state_at(2));
	assert_int_equal(state_noted(&world.notes, 102), state_at(0));
}

/* Which of them runs is not known from their being there. */
static void test_scan_state__a_thread_with_several_states_has_none_noted(void **state)
{
	(void)state;
	set_thread(1, 103);
	scan_for(100);
	assert_int_equal(state_noted(&world.notes, 103), 0);
	assert_int_equal(state_noted(&world.notes, 100), state_at(0));
	set_thread(1, 101);
	scan_for(100);
	assert_int_equal(state_noted(&world.notes, 103), state_at(3));
}

static void test_scan_state__an_id_that_is_none_is_not_noted(void **state)
{
	(void)state;
	set_thread(1, 1ull << 32 | 103);
	scan_for(100);
	assert_int_equal(state_noted(&world.notes, 103), state_at(3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_scan_state__notes_whose_states_it_came_by, set_up),
		cmocka_unit_test_setup(test_scan_state__a_later_scan_notes_anew, set_up),
		cmocka_unit_test_setup(test_scan_state__a_thread_with_several_states_has_none_noted,
				       set_up),
		cmocka_unit_test_setup(test_scan_state__an_id_that_is_none_is_not_noted, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
