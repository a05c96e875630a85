/* SPDX-License-Identifier: MIT */
/* The events worth a row in `pathprof list`: those that any machine may have, by perf's names. */
#include "tool/events/events.h"

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>

#include "tool/events/tracepoint.h"

static const char *const listed[] = {
	EVENT_CPU_TIME,
	"cpu-clock",
	"task-clock",
	"page-faults",
	"minor-faults",
	"major-faults",
	"alignment-faults",
	"emulation-faults",
	"cycles",
	"instructions",
	"ref-cycles",
	"bus-cycles",
	"cache-references",
	"cache-misses",
	"branch-instructions",
	"branch-misses",
	"stalled-cycles-frontend",
	"stalled-cycles-backend",
	"L1-dcache-loads",
	"L1-dcache-load-misses",
	"LLC-loads",
	"LLC-load-misses",
	"dTLB-loads",
	"dTLB-load-misses",
	"iTLB-load-misses",
	NULL,
};

const char *const *event_names(void)
{
	return listed;
}

/* By SIGTRAP; else, where that suits it, by an asynchronous signal. */
static int try_event(const char *name, struct perf_kind *kind, struct event_row *line)
{
	const struct event_request async = {.name = name, .trigger = TRIGGER_PERF_ASYNC};
	struct event_machine machine = event_machine_here();
	struct event_choice choice;
	struct errbuf unused;
	int code = perf_allowed(kind);

	line->user_only = kind->exclude_kernel;
	if (!code)
		return 0;
	if (!event_choose(&async, &machine, &choice, &unused)) {
		line->trigger = event_trigger_name(choice.trigger);
		line->user_only = true;
		return 0;
	}
	return perf_explain(code, name, &line->reason);
}

static void list_one(const char *name, event_row_fn row, void *user)
{
	struct event_row line = {.name = name, .unit = "events", .trigger = "perf-sigtrap"};
	struct perf_kind kind;
	bool clock;
	int code;

	code = event_encode(name, &kind, &clock, &line.reason);
	if (!code) {
		line.unit = clock ? "ns" : "events";
		line.default_period = event_default_period(&kind);
		code = try_event(name, &kind, &line);
	}
	line.available = code == 0;
	row(user, &line);
}

/* Names that are made, not listed: one of each sort is tried. */
static void list_families(event_row_fn row, void *user)
{
	static const uint64_t watched;
	static const struct {
		const char *name;
		struct perf_kind kind;
	} families[] = {
		{"rCODE", {.type = PERF_TYPE_RAW}},
		{"PMU/TERM,../", {.type = PERF_TYPE_RAW}},
		{"mem:ADDRESS/LENGTH:ACCESS", {.type = PERF_TYPE_BREAKPOINT}},
		{"syscalls:sys_enter_*", {.type = PERF_TYPE_TRACEPOINT}},
		{"GROUP:TRACEPOINT", {.type = PERF_TYPE_TRACEPOINT}},
	};

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		struct event_row line = {
			.name = families[i].name, .unit = "events", .trigger = "perf-sigtrap"};
		struct perf_kind kind = families[i].kind;
		bool tracepoint = kind.type == PERF_TYPE_TRACEPOINT;
		int code = 0;

		if (kind.type == PERF_TYPE_BREAKPOINT) {
			kind.bp_type = HW_BREAKPOINT_W;
			kind.config1 = (uint64_t)(uintptr_t)&watched;
			kind.config2 = sizeof(watched);
		}
		if (tracepoint)
			code = tracepoint_number("syscalls:sys_enter_openat", &kind.config,
						 &line.reason);
		if (!code) {
			code = perf_allowed(&kind);
			if (code)
				perf_explain(code, line.name, &line.reason);
		}
		line.user_only = kind.exclude_kernel;
		line.default_period =
			tracepoint && line.name[0] == 's' ? 1 : event_default_period(&kind);
		line.available = code == 0;
		row(user, &line);
	}
}

void event_list(event_row_fn row, void *user)
{
	struct event_row cpu_time = {.name = EVENT_CPU_TIME,
				     .unit = "ns",
				     .trigger = "cpu-timer",
				     .default_period = perf_tick_ns(),
				     .available = perf_probe_cpu_timer() == 0};

	if (!cpu_time.available)
		snprintf(cpu_time.reason.text, sizeof(cpu_time.reason.text),
			 "Cannot make a CPU timer: raise the limit of pending signals (ulimit -i)");
	row(user, &cpu_time);
	for (size_t i = 1; listed[i]; i++) /* cpu-time was the first */
		list_one(listed[i], row, user);
	list_families(row, user);
}
