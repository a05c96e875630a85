/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tool/reader/estimate.h"

#define MS 1000000ull

static const struct estimate_place first = {1, WAIT_OTHER}, second = {2, WAIT_LOCK};

/* What was given out at an end, by kind. */
struct given {
	uint64_t of_kind[WAIT_UNSEEN + 1], times;
	uint32_t python; /* of the last */
};

static void give(void *user, const struct estimate_place *place, uint64_t count)
{
	struct given *given = user;

	given->of_kind[place->kind] += count;
	given->python = place->python;
	given->times++;
}

static void test_estimate_seen__stands_for_what_was_not_looked_at_before(void **state)
{
	struct estimate estimate = {0}, ended = {0};

	(void)state;
	for (int i = 0; i < 4; i++)
		estimate_unseen(&estimate, false, 2 * MS);
	assert_int_equal(estimate_seen(&estimate, &ended, false, 2 * MS, &first), 10 * MS);
	assert_int_equal(estimate_seen(&estimate, &ended, false, 2 * MS, &first), 2 * MS);
}

static void test_estimate_seen__long_waits_do_not_take_the_time_of_short_ones(void **state)
{
	struct estimate estimate = {0}, ended = {0};
	struct given given = {{0}, 0, 0};

	(void)state;
	estimate_unseen(&estimate, false, 1 * MS);
	assert_int_equal(estimate_seen(&estimate, &ended, false, 50 * MS, &first), 50 * MS);
	estimate_unseen(&estimate, true, 20 * MS);
	assert_int_equal(estimate_seen(&estimate, &ended, false, 20 * MS, &first), 20 * MS);
	estimate_finish(&estimate, NULL, give, &given);
	assert_int_equal(given.of_kind[WAIT_UNSEEN], 1 * MS);
	assert_int_equal(given.of_kind[WAIT_RUNNABLE], 20 * MS);
	assert_int_equal(given.of_kind[WAIT_OTHER], 0);
	assert_int_equal(given.python, 0);
}

static void test_estimate_finish__what_comes_behind_the_last_look_is_told_as_it(void **state)
{
	struct estimate estimate = {0}, ended = {0};
	struct given given = {{0}, 0, 0};

	(void)state;
	estimate_seen(&estimate, &ended, false, 5 * MS, &second);
	estimate_unseen(&estimate, false, 5 * MS);
	estimate_unseen(&estimate, false, 5 * MS);
	estimate_finish(&estimate, &ended, give, &given);
	assert_int_equal(given.of_kind[WAIT_LOCK], 10 * MS);
	assert_int_equal(given.python, 2);
	assert_int_equal(given.times, 1);
}

static void test_estimate_finish__short_threads_are_one_population(void **state)
{
	struct estimate ended = {0}, later = {0};
	struct given given = {{0}, 0, 0};

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct estimate thread = {0};

		estimate_unseen(&thread, false, 2 * MS);
		estimate_finish(&thread, &ended, give, &given);
	}
	assert_int_equal(given.times, 0);
	assert_int_equal(estimate_seen(&later, &ended, false, 2 * MS, &first), 8 * MS);
	assert_int_equal(estimate_seen(&later, &ended, false, 2 * MS, &first), 2 * MS);
	estimate_finish(&later, &ended, give, &given);
	estimate_finish(&ended, NULL, give, &given);
	assert_int_equal(given.times, 0);
}

static void test_estimate_finish__waits_about_as_long_are_told_as_a_look_nearby(void **state)
{
	struct estimate estimate = {0}, ended = {0};
	struct given given = {{0}, 0, 0};

	(void)state;
	estimate_seen(&estimate, &ended, false, 5 * MS, &second);
	estimate_seen(&estimate, &ended, false, 500 * MS, &first);
	estimate_unseen(&estimate, false, 3 * MS);
	estimate_finish(&estimate, NULL, give, &given);
	assert_int_equal(given.of_kind[WAIT_LOCK], 3 * MS);
	estimate_unseen(&estimate, false, 50000);
	estimate_finish(&estimate, NULL, give, &given);
	assert_int_equal(given.of_kind[WAIT_UNSEEN], 50000);
}

static void test_estimate__lengths_of_all_sizes_are_kept(void **state)
{
	struct estimate estimate = {0};
	struct given given = {{0}, 0, 0};

	(void)state;
	estimate_unseen(&estimate, false, 0);
	estimate_unseen(&estimate, false, 1);
	estimate_unseen(&estimate, false, 1ull << 50);
	estimate_finish(&estimate, NULL, give, &given);
	assert_int_equal(given.of_kind[WAIT_UNSEEN], (1ull << 50) + 1);
	given.times = 0;
	estimate_finish(&estimate, NULL, give, &given);
	assert_int_equal(given.times, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_estimate_seen__stands_for_what_was_not_looked_at_before),
		cmocka_unit_test(test_estimate_seen__long_waits_do_not_take_the_time_of_short_ones),
		cmocka_unit_test(
			test_estimate_finish__what_comes_behind_the_last_look_is_told_as_it),
		cmocka_unit_test(test_estimate_finish__short_threads_are_one_population),
		cmocka_unit_test(
			test_estimate_finish__waits_about_as_long_are_told_as_a_look_nearby),
		cmocka_unit_test(test_estimate__lengths_of_all_sizes_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
