/* SPDX-License-Identifier: MIT */
/*
 * Threads in step with the tick, simulated: a thread wakes by some rule and runs for a burst; a
 * tick every 4 ms meets it or not; the CPU timer fires at a tick where a period of CPU time has
 * gone by since the last firing's grid point, and says how many periods went by.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "make_recording.h"
#include "read_made.h"
#include "tool/analysis/profile.h"

#define T0	1000000000ull
#define TICK_NS 4000000.0

struct thread_rule {
	double wake_ns; /* from wake-up to wake-up; 0: at random, wake_mean_ns on average */
	double mean_ns;
	double burst_ns;    /* of CPU time each time */
	double long_ns;	    /* every 50th burst */
	double phase_ns;    /* of the first wake-up */
	double start_up_ns; /* CPU time in one go before */
	double seconds;
};

struct simulation {
	struct maker *maker;
	double cpu, expiry, next_tick;
	uint64_t samples, overrun;
};

static uint64_t random_state = 1;

static double next_random(void)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(random_state >> 11) / (double)(1ull << 53);
}

/* The thread runs from @from to @to. */
static void run(struct simulation *simulation, double from, double to)
{
	while (simulation->next_tick < from)
		simulation->next_tick += TICK_NS;
	for (; simulation->next_tick < to; simulation->next_tick += TICK_NS) {
		double cpu = simulation->cpu + simulation->next_tick - from;
		uint64_t periods = 0;

		for (; simulation->expiry <= cpu; simulation->expiry += TICK_NS)
			periods++;
		if (!periods)
			continue;
		maker_sample(simulation->maker, 0, 0, T0 + (uint64_t)simulation->next_tick, 0, 0,
			     periods * (uint64_t)TICK_NS);
		simulation->samples++;
		simulation->overrun += periods - 1;
	}
	simulation->cpu += to - from;
}

/* The number of threads found in step; the one thread of the recording follows the rule. */
static size_t simulate(const struct thread_rule *rule)
{
	struct simulation simulation = {.maker = maker_new(), .expiry = TICK_NS};
	struct maker_thread record = {.pid = 1, .tid = 1, .start_ns = T0, .name = "simulated"};
	double now = rule->start_up_ns + rule->phase_ns, end = rule->seconds * 1e9;
	struct in_step found[1];
	struct trace *trace;
	size_t number;

	maker_begin(simulation.maker, 0, 1, 1, T0);
	if (rule->start_up_ns > 0)
		run(&simulation, 0, rule->start_up_ns);
	for (double free_at = 0; now < end; record.voluntary_switches++) {
		double burst = rule->burst_ns;

		if (rule->long_ns > 0 && record.voluntary_switches % 50 == 49)
			burst = rule->long_ns;
		if (now < free_at)
			now = free_at;
		run(&simulation, now, now + burst);
		free_at = now + burst;
		now += rule->wake_ns > 0 ? rule->wake_ns
					 : burst - rule->mean_ns * log(1 - next_random());
	}
	record.end_ns = T0 + (uint64_t)end;
	record.cpu_ns = (uint64_t)simulation.cpu;
	record.samples = simulation.samples;
	record.overrun = simulation.overrun;
	maker_thread(simulation.maker, &record);
	trace = read_made(simulation.maker);
	number = in_step_find(trace, found, 1);
	if (number) {
		assert_int_equal(found[0].thread, 0);
		assert_true(fabs(found[0].expected_samples - simulation.cpu / TICK_NS) < 1);
	}
	trace_free(trace);
	maker_free(simulation.maker);
	return number;
}

static void check(const struct thread_rule *rule, size_t expected)
{
	assert_int_equal(simulate(rule), expected);
}

static void test_in_step__woken_at_each_tick(void **state)
{
	(void)state;
	/* met each time, never met, and both after a start of half a second of CPU time */
	check(
		&(struct thread_rule){
			.wake_ns = 4e6, .burst_ns = 1e6, .phase_ns = 3.5e6, .seconds = 2},
		1);
	check(&(struct thread_rule){.wake_ns = 4e6, .burst_ns = 1e6, .phase_ns = 1e6, .seconds = 2},
	      1);
	check(&(struct thread_rule){.wake_ns = 4e6,
				    .burst_ns = 1e6,
				    .phase_ns = 3.5e6,
				    .start_up_ns = 4e8,
				    .seconds = 3},
	      1);
	check(
		&(struct thread_rule){
			.wake_ns = 10e6, .burst_ns = 1e6, .phase_ns = 3.5e6, .seconds = 3},
		1);
	check(
		&(struct thread_rule){
			.wake_ns = 2e6, .burst_ns = 0.5e6, .phase_ns = 3.75e6, .seconds = 2},
		1);
}

static void test_in_step__no_relation_to_the_tick(void **state)
{
	(void)state;
	check(&(struct thread_rule){.wake_ns = 3.7e6, .burst_ns = 1e6, .seconds = 2}, 0);
	check(&(struct thread_rule){.wake_ns = 3.7e6, .burst_ns = 1e6, .seconds = 60}, 0);
	check(&(struct thread_rule){.wake_ns = 4.3e6, .burst_ns = 0.3e6, .seconds = 60}, 0);
	for (int i = 0; i < 20; i++) {
		check(&(struct thread_rule){.mean_ns = 3e6, .burst_ns = 1e6, .seconds = 2}, 0);
		check(&(struct thread_rule){.mean_ns = 1e6, .burst_ns = 0.1e6, .seconds = 20}, 0);
		check(&(struct thread_rule){.mean_ns = 2e6, .burst_ns = 2e6, .seconds = 20}, 0);
	}
}

static void test_in_step__long_runs_are_regular_rightly(void **state)
{
	(void)state;
	check(&(struct thread_rule){.wake_ns = 1e9, .burst_ns = 1e9, .seconds = 5}, 0);
	check(&(struct thread_rule){.mean_ns = 5e6, .burst_ns = 30e6, .seconds = 20}, 0);
	for (int i = 0; i < 10; i++)
		check(
			&(struct thread_rule){
				.mean_ns = 1e6, .burst_ns = 0.01e6, .long_ns = 40e6, .seconds = 10},
			0);
}

static void test_in_step__few_wakes_or_little_time_say_nothing(void **state)
{
	(void)state;
	check(
		&(struct thread_rule){
			.wake_ns = 4e6, .burst_ns = 1e6, .phase_ns = 3.5e6, .seconds = 0.2},
		0);
	check(
		&(struct thread_rule){
			.wake_ns = 4e6, .burst_ns = 0.01e6, .phase_ns = 1e6, .seconds = 2},
		0);
}

static void test_in_step__only_for_cpu_timers(void **state)
{
	struct maker *maker = maker_new();
	struct maker_thread record = {.pid = 1,
				      .tid = 1,
				      .start_ns = T0,
				      .end_ns = T0 + 2000000000ull,
				      .cpu_ns = 500000000,
				      .voluntary_switches = 500,
				      .name = "never met"};
	struct in_step found[1];
	struct trace *trace;

	(void)state;
	maker_thread(maker, &record);
	trace = read_made(maker);
	assert_int_equal(in_step_find(trace, found, 1), 1);
	assert_true(fabs(found[0].wakes_per_second - 250) < 0.001);
	assert_int_equal(in_step_find(trace, NULL, 0), 1);
	trace->events[0].trigger = "perf-sigtrap";
	assert_int_equal(in_step_find(trace, found, 1), 0);
	trace_free(trace);
	maker_free(maker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_step__woken_at_each_tick),
		cmocka_unit_test(test_in_step__no_relation_to_the_tick),
		cmocka_unit_test(test_in_step__long_runs_are_regular_rightly),
		cmocka_unit_test(test_in_step__few_wakes_or_little_time_say_nothing),
		cmocka_unit_test(test_in_step__only_for_cpu_timers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
