/* SPDX-License-Identifier: MIT */
/*
 * How often: defaults, frequencies, primes.
 *
 * A perf event by SIGTRAP keeps one period, since nothing in the target may change it, so it is a
 * prime: sampling then does not fall into step with a loop. One by an asynchronous signal is
 * re-armed by its thread, which may draw each period (choose.c). Each thread's first period is
 * drawn at random (the recorder's matter). A CPU timer's is not made a prime: it expires on the
 * scheduler's tick, which is no more in step for it. A frequency becomes a fixed period: in the
 * kernel's frequency mode the handler could not know what a sample stands for.
 */
#include "tool/events/events.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

/* All primes but the 1. */
#define CLOCK_PERIOD_NS	  999983
#define CYCLES_PERIOD	  2000003
#define CACHE_PERIOD	  10007
#define FAULT_PERIOD	  101
#define TRACEPOINT_PERIOD 101
#define RARE_PERIOD	  1 /* what somebody asked for by its place, or what hardly ever happens */

static bool is_prime(uint64_t number)
{
	if (number < 2 || (number > 2 && number % 2 == 0))
		return false;
	for (uint64_t divisor = 3; divisor * divisor <= number; divisor += 2) {
		if (number % divisor == 0)
			return false;
	}
	return true;
}

uint64_t event_prime_up_to(uint64_t number)
{
	while (number > 2 && !is_prime(number))
		number--;
	return number;
}

static uint64_t software_period(uint64_t config)
{
	switch (config) {
	case PERF_COUNT_SW_CPU_CLOCK:
	case PERF_COUNT_SW_TASK_CLOCK:
		return CLOCK_PERIOD_NS;
	case PERF_COUNT_SW_PAGE_FAULTS:
	case PERF_COUNT_SW_PAGE_FAULTS_MIN:
		return FAULT_PERIOD;
	default:
		return RARE_PERIOD;
	}
}

uint64_t event_default_period(const struct perf_kind *kind)
{
	switch (kind->type) {
	case PERF_TYPE_SOFTWARE:
		return software_period(kind->config);
	case PERF_TYPE_BREAKPOINT:
		return RARE_PERIOD;
	case PERF_TYPE_TRACEPOINT:
		return TRACEPOINT_PERIOD;
	case PERF_TYPE_RAW:
		return CYCLES_PERIOD;
	case PERF_TYPE_HARDWARE:
		return kind->config == PERF_COUNT_HW_CPU_CYCLES ||
				       kind->config == PERF_COUNT_HW_REF_CPU_CYCLES ||
				       kind->config == PERF_COUNT_HW_INSTRUCTIONS
			       ? CYCLES_PERIOD
			       : CACHE_PERIOD;
	default:
		return kind->type == PERF_TYPE_HW_CACHE ? CACHE_PERIOD : CYCLES_PERIOD;
	}
}

const char *event_time_text(uint64_t ns, char text[EVENT_TIME_BYTES])
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	double value = (double)ns;
	size_t unit = 0;

	/* As much as four digits round up: 999983 ns are 1 ms. */
	for (; value >= 999.95 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
		value /= 1000;
	snprintf(text, EVENT_TIME_BYTES, "%.4g %s", value, units[unit]);
	return text;
}
