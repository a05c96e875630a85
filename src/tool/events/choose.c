/* SPDX-License-Identifier: MIT */
/*
 * A request to an event with trigger and period, checked on this machine.
 *
 * Default periods: the tick for cpu-time, 1 ms for software clocks; for counts a prime, so that
 * sampling does not fall into step with a loop, of about a thousand a second for cycles and
 * instructions. A frequency becomes a fixed period: in the kernel's frequency mode the handler
 * could not know what a sample stands for.
 */
#include "tool/events/events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_S	 1000000000ull
#define CLOCK_PERIOD_NS	 1000000
#define CYCLES_PERIOD	 2000003
#define CACHE_PERIOD	 10007
#define FAULT_PERIOD	 101
#define RARE_PERIOD	 1     /* major faults, alignment and emulation traps */
#define CLOCK_MIN_GAP_NS 20000 /* half of what such a tick costs in a virtual machine */
#define COUNT_MIN_GAP_NS 2000

static void add_note(struct event_choice *choice, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void add_note(struct event_choice *choice, const char *format, ...)
{
	va_list arguments;

	if (choice->nr_notes == EVENT_NOTES_MAX)
		return;
	va_start(arguments, format);
	vsnprintf(choice->notes[choice->nr_notes++], EVENT_NOTE_BYTES, format, arguments);
	va_end(arguments);
}

const char *event_trigger_name(enum trigger trigger)
{
	switch (trigger) {
	case TRIGGER_CPU_TIMER:
		return "cpu-timer";
	case TRIGGER_PERF_SIGTRAP:
		return "perf-sigtrap";
	case TRIGGER_PERF_ASYNC:
		return "perf-async";
	default:
		return "manual";
	}
}

const char *event_time_text(uint64_t ns, char text[EVENT_TIME_BYTES])
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	double value = (double)ns;
	size_t unit = 0;

	for (; value >= 1000 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
		value /= 1000;
	snprintf(text, EVENT_TIME_BYTES, "%.4g %s", value, units[unit]);
	return text;
}

uint64_t event_default_period(const struct perf_kind *kind)
{
	if (kind->type == PERF_TYPE_HARDWARE) {
		switch (kind->config) {
		case PERF_COUNT_HW_CPU_CYCLES:
		case PERF_COUNT_HW_REF_CPU_CYCLES:
		case PERF_COUNT_HW_INSTRUCTIONS:
			return CYCLES_PERIOD;
		default:
			return CACHE_PERIOD;
		}
	}
	if (kind->type != PERF_TYPE_SOFTWARE)
		return kind->type == PERF_TYPE_RAW ? CYCLES_PERIOD : CACHE_PERIOD;
	switch (kind->config) {
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

/* The period that was asked for, or 0: none was. */
static int asked_period(const struct event_request *request, bool clock, uint64_t *ret_period,
			struct errbuf *err)
{
	if (request->period && request->frequency)
		return errbuf_set(err, -EINVAL, "Give either -c PERIOD or -F HZ, not both");
	if (request->frequency > NS_PER_S)
		return errbuf_set(err, -EINVAL, "-F takes 1 to 1000000000 a second");
	if (request->frequency && !clock)
		return errbuf_set(
			err, -EINVAL,
			"-F needs an event that is counted in time; for this one give the "
			"number of events per sample with -c PERIOD");
	*ret_period = request->frequency ? NS_PER_S / request->frequency : request->period;
	return 0;
}

static int choose_cpu_time(const struct event_request *request, uint32_t tick_ns,
			   struct event_choice *choice, struct errbuf *err)
{
	int code = asked_period(request, true, &choice->period, err);
	char tick[EVENT_TIME_BYTES], asked[EVENT_TIME_BYTES];

	if (code)
		return code;
	snprintf(choice->name, sizeof(choice->name), "%s", EVENT_CPU_TIME);
	choice->unit = "ns";
	choice->trigger = TRIGGER_CPU_TIMER;
	choice->min_gap_ns = 0; /* the tick limits it */
	if (choice->period && choice->period < tick_ns)
		add_note(choice,
			 "%s is sampled every %s, not every %s: a CPU timer expires on the "
			 "scheduler's tick, at most %.0f times a second here; -e cpu-clock gives "
			 "that rate where perf events are allowed",
			 EVENT_CPU_TIME, event_time_text(tick_ns, tick),
			 event_time_text(choice->period, asked), 1e9 / tick_ns);
	if (choice->period < tick_ns)
		choice->period = tick_ns;
	add_note(choice, "Waiting is not seen: only CPU time is sampled");
	return 0;
}

static int choose_perf(const struct event_request *request, struct event_choice *choice, bool clock,
		       struct errbuf *err)
{
	bool asked_user_only = choice->perf.exclude_kernel;
	int code = asked_period(request, clock, &choice->period, err);

	if (code)
		return code;
	if (strlen(request->name) >= sizeof(choice->name))
		return errbuf_set(err, -EINVAL,
				  "'%s' is longer than the %zu characters of an "
				  "event's name",
				  request->name, sizeof(choice->name) - 1);
	snprintf(choice->name, sizeof(choice->name), "%s", request->name);
	choice->unit = clock ? "ns" : "events";
	choice->trigger = TRIGGER_PERF_SIGTRAP;
	choice->min_gap_ns = clock ? CLOCK_MIN_GAP_NS : COUNT_MIN_GAP_NS;
	if (!choice->period)
		choice->period = event_default_period(&choice->perf);
	if (clock && choice->period < EVENT_CLOCK_MIN_NS) {
		choice->period = EVENT_CLOCK_MIN_NS;
		add_note(choice,
			 "%s is sampled every %d us: a faster clock would starve the program",
			 choice->name, EVENT_CLOCK_MIN_NS / 1000);
	}
	code = perf_allowed(&choice->perf);
	if (code)
		return perf_explain(code, choice->name, err);
	if (choice->perf.exclude_kernel && !asked_user_only)
		add_note(choice,
			 "Kernel time is not included: %s is counted in user mode only; as root or "
			 "with kernel.perf_event_paranoid at 1 it is",
			 choice->name);
	if (clock)
		add_note(choice, "Waiting is not seen: only time on a CPU is sampled");
	return 0;
}

/* Nothing was asked for: cycles where there is a PMU, else CPU time. */
static int choose_default(const struct event_request *request, uint32_t tick_ns,
			  struct event_choice *choice, struct errbuf *err)
{
	struct event_request cycles = *request;
	struct perf_kind kind = {.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES};

	/* A rate in time was asked for: only a clock serves it. */
	if (request->frequency || perf_allowed(&kind))
		return choose_cpu_time(request, tick_ns, choice, err);
	cycles.name = "cycles";
	choice->perf = kind;
	choice->perf.exclude_kernel = false; /* so that the note on it is made */
	return choose_perf(&cycles, choice, false, err);
}

int event_choose(const struct event_request *request, uint32_t tick_ns,
		 struct event_choice *ret_choice, struct errbuf *err)
{
	struct event_choice choice = {0};
	bool clock = false;
	int code;

	if (!request->name) {
		code = choose_default(request, tick_ns, &choice, err);
	} else if (!strcmp(request->name, EVENT_CPU_TIME)) {
		code = choose_cpu_time(request, tick_ns, &choice, err);
	} else {
		code = event_encode(request->name, &choice.perf, &clock, err);
		if (code == -ENOENT || code == -ENOTSUP)
			return -EINVAL;
		if (!code)
			code = choose_perf(request, &choice, clock, err);
	}
	if (!code)
		*ret_choice = choice;
	return code;
}
