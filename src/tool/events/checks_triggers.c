/* SPDX-License-Identifier: MIT */
#include "tool/events/checks_triggers.h"

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tool/events/tracepoint.h"

static void say(struct check *check, const char *found, const struct errbuf *why, check_fn fn,
		void *user)
{
	snprintf(check->found, sizeof(check->found), "%.250s", found);
	if (check->result == CHECK_NO && why)
		snprintf(check->knob, sizeof(check->knob), "%.250s", why->text);
	fn(user, check);
}

static void check_blocked(enum perf_sigtrap sigtrap, check_fn fn, void *user)
{
	bool kept = sigtrap == PERF_SIGTRAP_WORKS || sigtrap == PERF_SIGTRAP_OWN_ALONE;
	struct check check = {.key = "blocked_sigtrap",
			      .title = "A blocked SIGTRAP (tried in a child)",
			      .result = kept ? CHECK_OK : CHECK_NO};
	struct errbuf why = {.text = "a newer kernel; the next trigger of the ladder is taken"};

	if (kept)
		say(&check, "harmless: kept until it is unblocked", NULL, fn, user);
	else
		say(&check,
		    sigtrap == PERF_SIGTRAP_KILLS_BLOCKED ? "kills the thread that blocks it"
							  : "not known: no overflow came",
		    &why, fn, user);
}

/* By opening it; whether a signal comes is sigtrap's check. */
static void check_kind(struct check *check, struct perf_kind kind, enum perf_delivery delivery,
		       check_fn fn, void *user)
{
	struct errbuf why = {0};
	int code = perf_allowed_by(&kind, delivery);

	check->result = code ? CHECK_NO : CHECK_OK;
	if (code)
		perf_explain(code, check->key, &why);
	say(check,
	    code						? "refused"
	    : kind.exclude_kernel || delivery == PERF_BY_SIGNAL ? "user mode only"
								: "user and kernel mode",
	    &why, fn, user);
}

static void check_async(check_fn fn, void *user)
{
	struct check check = {.key = "async", .title = "Overflows by another signal (perf-async)"};
	int code = perf_probe_duplicate();
	struct errbuf why = {0};

	if (code) {
		check.result = CHECK_NO;
		perf_explain_duplicate(code, check.key, &why);
		say(&check, "refused", &why, fn, user);
		return;
	}
	check_kind(&check,
		   (struct perf_kind){.type = PERF_TYPE_SOFTWARE,
				      .config = PERF_COUNT_SW_PAGE_FAULTS,
				      .exclude_kernel = true},
		   PERF_BY_SIGNAL, fn, user);
}

static void check_breakpoints(check_fn fn, void *user)
{
	struct check check = {.key = "breakpoints", .title = "Breakpoints (mem:ADDRESS)"};
	static const uint64_t watched;

	check_kind(&check,
		   (struct perf_kind){.type = PERF_TYPE_BREAKPOINT,
				      .bp_type = HW_BREAKPOINT_W,
				      .config1 = (uint64_t)(uintptr_t)&watched,
				      .config2 = sizeof(watched)},
		   PERF_BY_SIGTRAP, fn, user);
}

static void check_tracefs(check_fn fn, void *user)
{
	struct check check = {.key = "tracefs", .title = "Names of tracepoints (tracefs)"};
	struct errbuf why = {0};
	uint64_t number;
	int code = tracepoint_number("syscalls:sys_enter_openat", &number, &why);

	check.result = code ? CHECK_NO : CHECK_OK;
	say(&check, code ? "not to be read" : "readable", &why, fn, user);
	if (code)
		return;
	check = (struct check){.key = "tracepoint_calls", .title = "Tracepoints in system calls"};
	code = event_machine_here().calls(&why);
	check.result = code ? CHECK_NO : CHECK_OK;
	say(&check, code ? "must not signal here" : "signal at the call's end, which is left alone",
	    &why, fn, user);
}

static void check_ladder(enum perf_sigtrap sigtrap, check_fn fn, void *user)
{
	struct check check = {.key = "ladder", .title = "What record takes without -e"};
	const struct event_request request = {.name = NULL};
	struct event_machine machine = event_machine_here();
	struct event_choice choice;
	struct errbuf why = {0};
	char found[128];

	machine.found_sigtrap = sigtrap;
	check.result = event_choose(&request, &machine, &choice, &why) ? CHECK_NO : CHECK_INFO;
	if (check.result == CHECK_NO) {
		say(&check, "nothing", &why, fn, user);
		return;
	}
	snprintf(found, sizeof(found), "%s by %s", choice.name, event_trigger_name(choice.trigger));
	if (choice.descent[0])
		snprintf(check.knob, sizeof(check.knob), "%.250s", choice.descent);
	say(&check, found, NULL, fn, user);
}

void checks_triggers(enum perf_sigtrap sigtrap, check_fn fn, void *user)
{
	check_blocked(sigtrap, fn, user);
	check_async(fn, user);
	check_breakpoints(fn, user);
	check_tracefs(fn, user);
	check_ladder(sigtrap, fn, user);
}
