/* SPDX-License-Identifier: MIT */
/*
 * Threads that move in step with the scheduler's tick.
 *
 * A CPU timer is looked at by the kernel's tick alone: a sample falls where the thread is at a tick
 * at which at least one period of CPU time has gone by since the last. For a thread that runs
 * on, or whose bursts have no relation to the tick, that is fair. A thread that a tick-like clock
 * wakes, and that runs for less than a tick each time, is met by each tick at the same place of its
 * burst, or never: its samples say where the tick falls, not where the time went.
 *
 * What can be told from a recording (periods = CPU time / period; period at least a tick; E is the
 * thread's periods, F its samples; one sample may stand for several periods):
 *
 *   bursts without relation   a tick meets the thread with equal chance anywhere, so the time to
 * the next one is random, and a period holds a tick with the probability 1 - exp(-period/tick), at
 * most 1 - (1/4)^(period/tick) for bursts of half a tick: F/E is 0.63 to 0.75 at a period of one
 * tick in step, met each time    no period is without a sample: F/E is 1 in step, never met F/E is
 * 0
 *
 * So a thread is in step where its bursts are at most half a tick and F is far below or above
 * (standard deviations of the binomial) what chance allows. Only samples with idle time
 * before them count above, as a thread may also have long runs, where F/E is 1 rightly; they must
 * be most; and the wake-ups must be near a simple ratio of the tick, or the samples come evenly (on
 * a busy machine a program skips some of its sleeps), as a slow drift past the tick or one long run
 * for each request can look regular too. Below, LOW_SHARE leaves room for threads that drift past
 * the tick slowly (a wake-up each 3.7 ms gives F/E of 0.5, and right shares in the end) and for
 * long system calls. With few samples, where chance cannot be told from step, the wake-ups decide:
 * a period that is a simple ratio of the tick, and F/E near 0 or 1.
 *
 * Measured on Linux, tick 4 ms, 0.5 ms in A and 0.5 ms in B each time: woken each 4 or 10 ms, all
 * samples in A or all in B or none at all; each 3.7 ms, 67 and 66.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool/analysis/analysis_priv.h"

#define WAKES_MIN	 100
#define PERIODS_MIN	 8 /* of CPU time: below, nothing can be said */
#define UTILISATION_MAX	 0.9
#define BURST_TICKS_MAX	 0.5 /* of the mean burst, where chance decides */
#define APART_SHARE_MIN	 0.6 /* of the samples that have idle time before them */
#define APART_FACTOR	 1.5 /* a sample has, if more wall time than this times CPU time went by */
#define LONG_RUNS_SHARE	 0.1 /* of those; above: runs of more than a tick, in which F/E is 1 */
#define DEVIATIONS_ABOVE 4.0
#define DEVIATIONS_BELOW 2.0 /* a false word of warning costs less than a missing one */
#define LOW_SHARE	 0.45
#define RATIO_DENOMINATOR \
	2 /* with more, ticks fall on so many places of the burst that they tell */
#define RATIO_MAX	4.0 /* wake-ups rarer than every fourth tick: any ratio is near a simple one */
#define RATIO_TOLERANCE 0.01
#define EVEN_SHARE	0.85 /* F/E at which even samples tell */
#define EVEN_GAP_MAX	10.0 /* ticks */
#define EVEN_VARIATION	0.5  /* standard deviation of even gaps, by their mean */
#define WINDOW_SHARE \
	1.1	      /* of the threads' CPU time and the event's count: they are the same else */
#define STEP_HIGH 0.9 /* F/E of a thread in step that is met */
#define STEP_LOW  0.1 /* and of one that is not */

/* What the samples of a thread say, in periods of CPU time. */
struct pace {
	double samples, periods; /* of those with idle time before them */
	double long_runs;	 /* times that such a sample was followed by one without */
	bool apart;		 /* the last sample had idle time before it */
	uint64_t all_samples;
	uint64_t first_ns; /* of those with idle time before them */
	uint64_t last_ns;
	double gaps, squares; /* time from sample to sample: sum, sum of squares; in ticks */
};

struct timing {
	uint32_t event;
	double period_ns; /* at least a tick */
	double tick_ns;
};

static bool find_timing(const struct trace *trace, struct timing *ret_timing)
{
	for (uint32_t i = 0; i < trace->nr_events; i++) {
		const struct trace_event *event = &trace->events[i];
		double period = (double)event->period, tick = (double)trace->tick_ns;

		if (!event->trigger || strcmp(event->trigger, "cpu-timer") || !event->period ||
		    tick <= 0)
			continue;
		*ret_timing = (struct timing){
			.event = i, .period_ns = period > tick ? period : tick, .tick_ns = tick};
		return true;
	}
	return false;
}

/* Samples of a thread stand in the order of their time. */
static void measure(const struct trace *trace, const struct timing *timing, struct pace *paces)
{
	for (size_t i = 0; i < trace->nr_samples; i++) {
		const struct trace_sample *sample = &trace->samples[i];
		struct pace *pace = &paces[sample->thread];
		double wall = (double)sample->time_ns - (double)pace->last_ns;
		bool apart = pace->all_samples && wall > APART_FACTOR * (double)sample->count;

		if (sample->event != timing->event)
			continue;
		pace->long_runs += pace->apart && !apart;
		pace->apart = apart;
		pace->all_samples++;
		if (apart) {
			if (!pace->first_ns)
				pace->first_ns = sample->time_ns;
			pace->samples++;
			pace->gaps += wall / timing->tick_ns;
			pace->squares += wall / timing->tick_ns * wall / timing->tick_ns;
			pace->periods += (double)sample->count / timing->period_ns;
		}
		pace->last_ns = sample->time_ns;
	}
}

/* Is there a ratio of small numbers from @low to @high? */
static bool is_simple_ratio(double low, double high)
{
	low *= 1 - RATIO_TOLERANCE;
	high *= 1 + RATIO_TOLERANCE;
	for (int q = 1; q <= RATIO_DENOMINATOR; q++)
		if (floor(high * q) >= 1 && floor(high * q) >= low * q)
			return true;
	return false;
}

/*
 * Does nearly every period have a sample, and do they come evenly? Requests that arrive by chance
 * have a variation near 1; short bursts by chance are even enough, but leave periods without one;
 * and a thread that drifts past the tick (4.3 ms) is met once in many wake-ups, at each place in
 * turn.
 */
static bool has_even_gaps(const struct pace *pace)
{
	double mean = pace->gaps / pace->samples;
	double variance = pace->squares / pace->samples - mean * mean;

	return pace->samples >= EVEN_SHARE * pace->periods && mean <= EVEN_GAP_MAX &&
	       variance <= EVEN_VARIATION * EVEN_VARIATION * mean * mean;
}

/* Runs of more than a tick, be the mean burst short: threads that hand on a lock, say. */
static bool has_long_runs(const struct pace *pace)
{
	return pace->long_runs > LONG_RUNS_SHARE * pace->samples;
}

static double deviation(double number, double probability)
{
	return sqrt(number * probability * (1 - probability));
}

/*
 * More samples than chance allows: no period without one. The wake-ups must fit, at least from
 * the first sample with idle time before it on, as a start-up may have gone before.
 */
static bool is_too_regular(const struct trace_thread *thread, const struct pace *pace,
			   const struct timing *timing)
{
	double wakes = (double)thread->voluntary_switches;
	double least = ((double)thread->end_ns - (double)pace->first_ns) / wakes / timing->tick_ns;
	double most = ((double)thread->end_ns - (double)thread->start_ns) / wakes / timing->tick_ns;
	double probability = 1 - pow(0.25, timing->period_ns / timing->tick_ns);

	return !has_long_runs(pace) && (is_simple_ratio(least, most) || has_even_gaps(pace)) &&
	       pace->samples >= APART_SHARE_MIN * (double)pace->all_samples &&
	       pace->samples > pace->periods * probability +
				       DEVIATIONS_ABOVE * deviation(pace->periods, probability) + 1;
}

static bool is_in_step(const struct trace_thread *thread, const struct pace *pace,
		       const struct timing *timing, const struct in_step *figures)
{
	double life = (double)thread->end_ns - (double)thread->start_ns;
	double wakes = (double)thread->voluntary_switches, cpu = (double)thread->cpu_ns;
	double samples = (double)pace->all_samples, expected = figures->expected_samples;
	double burst_ticks = cpu / (wakes + 1) / timing->tick_ns;
	double ratio = life / wakes / timing->tick_ns;

	if (life <= 0 || wakes < WAKES_MIN || expected < PERIODS_MIN ||
	    cpu > UTILISATION_MAX * life || burst_ticks >= 1)
		return false;
	if (burst_ticks <= BURST_TICKS_MAX &&
	    (samples <
		     expected * LOW_SHARE - DEVIATIONS_BELOW * deviation(expected, LOW_SHARE) - 1 ||
	     is_too_regular(thread, pace, timing)))
		return true;
	return ratio <= RATIO_MAX && is_simple_ratio(ratio, ratio) &&
	       ((samples >= STEP_HIGH * expected && !has_long_runs(pace)) ||
		samples <= STEP_LOW * expected);
}

/* Its timer could not be made (no signal queue left): that is said elsewhere. */
static bool was_never_armed(const struct trace_thread *thread, const struct pace *pace)
{
	return !pace->all_samples && thread->lost;
}

/*
 * Were samples taken in a part of the program's life (--delay, --duration)? The event's count is of
 * that part, a thread's CPU time and wake-ups of its whole life: nothing can be compared.
 */
static bool is_windowed(const struct trace *trace, const struct timing *timing)
{
	uint64_t cpu_ns = 0, count = trace->events[timing->event].count;

	for (size_t i = 0; i < trace->nr_threads; i++)
		cpu_ns += trace->threads[i].cpu_ns;
	return count && (double)cpu_ns > WINDOW_SHARE * (double)count;
}

size_t in_step_find(const struct trace *trace, struct in_step *ret_threads, size_t max)
{
	struct timing timing;
	struct pace *paces;
	size_t found = 0;

	if (!find_timing(trace, &timing) || is_windowed(trace, &timing))
		return 0;
	paces = calloc(trace->nr_threads + 1, sizeof(*paces));
	if (!paces)
		return 0;
	measure(trace, &timing, paces);
	for (uint32_t i = 0; i < trace->nr_threads; i++) {
		const struct trace_thread *thread = &trace->threads[i];
		double life = (double)thread->end_ns - (double)thread->start_ns;
		struct in_step figures = {
			.thread = i,
			.wakes_per_second =
				life > 0 ? (double)thread->voluntary_switches * 1e9 / life : 0,
			.expected_samples = (double)thread->cpu_ns / timing.period_ns,
			.samples = paces[i].all_samples,
		};

		if (!thread->cpu_ns || was_never_armed(thread, &paces[i]) ||
		    !is_in_step(thread, &paces[i], &timing, &figures))
			continue;
		if (found < max)
			ret_threads[found] = figures;
		found++;
	}
	free(paces);
	return found;
}
