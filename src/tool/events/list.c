/* SPDX-License-Identifier: MIT */
/* The events worth a row in `pathprof list`: those that any machine may have, by perf's names. */
#include "tool/events/events.h"

#include <stdio.h>

static const char *const listed[] = {
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
};

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
		code = perf_allowed(&kind);
		if (code)
			perf_explain(code, name, &line.reason);
		line.user_only = kind.exclude_kernel;
	}
	line.available = code == 0;
	row(user, &line);
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
	for (size_t i = 0; i < sizeof(listed) / sizeof(listed[0]); i++)
		list_one(listed[i], row, user);
}
