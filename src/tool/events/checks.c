/* SPDX-License-Identifier: MIT */
/*
 * What works here, and which knob changes it: the kernel's part of `pathprof doctor`.
 *
 * Everything is tried rather than read off a version, in the process or a child of it.
 */
#include "tool/events/events.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tool/events/checks_triggers.h"

static void say(const struct check *check, check_fn fn, void *user)
{
	fn(user, check);
}

static void check_kernel(check_fn fn, void *user)
{
	struct check check = {.key = "kernel", .title = "Kernel", .result = CHECK_INFO};
	struct utsname name;

	if (!uname(&name))
		snprintf(check.found, sizeof(check.found), "%.64s %.64s, tick %.3g ms",
			 name.release, name.machine, perf_tick_ns() / 1e6);
	say(&check, fn, user);
}

static bool check_cpu_timer(check_fn fn, void *user)
{
	struct check check = {.key = "cpu_timer", .title = "CPU-time timers (cpu-time)"};
	int code = perf_probe_cpu_timer();

	check.result = code ? CHECK_NO : CHECK_OK;
	if (code) {
		snprintf(check.found, sizeof(check.found), "timer_create: %s", strerror(-code));
		snprintf(check.knob, sizeof(check.knob),
			 "raise the limit of pending signals: ulimit -i, one a thread");
	} else {
		snprintf(check.found, sizeof(check.found), "at most %.0f samples a second of CPU",
			 1e9 / perf_tick_ns());
	}
	say(&check, fn, user);
	return !code;
}

static void check_paranoid(check_fn fn, void *user)
{
	struct check check = {.key = "perf_event_paranoid", .title = "kernel.perf_event_paranoid"};
	int level = perf_paranoid();

	if (level < -64) {
		check.result = CHECK_NO;
		snprintf(check.found, sizeof(check.found), "not readable: no perf events here");
		snprintf(check.knob, sizeof(check.knob), "a kernel with CONFIG_PERF_EVENTS");
		say(&check, fn, user);
		return;
	}
	check.result = level <= 2 || geteuid() == 0 ? CHECK_OK : CHECK_NO;
	snprintf(check.found, sizeof(check.found), "%d%s", level,
		 geteuid() == 0 ? " (root: not limited by it)"
		 : level <= 1	? ""
		 : level == 2	? ": user mode only"
				: ": no perf events for users");
	if (level > 1 && geteuid() != 0)
		snprintf(check.knob, sizeof(check.knob),
			 "sysctl kernel.perf_event_paranoid=1 counts kernel time as well");
	say(&check, fn, user);
}

/* Why an event cannot be opened, in a few words; the knob has the sentence. */
static const char *why_not(int code)
{
	switch (-code) {
	case ENOENT:
	case EOPNOTSUPP:
	case ENODEV:
		return "none on this machine";
	case EACCES:
		return "not permitted for this user";
	case EPERM:
	case ENOSYS:
		return "forbidden here";
	case EINVAL:
		return "refused by this kernel";
	default:
		return strerror(-code);
	}
}

/* One perf event, tried by opening it. */
static bool check_event(struct check *check, struct perf_kind kind, const char *name, check_fn fn,
			void *user)
{
	struct errbuf err = {0};
	int code = perf_allowed(&kind);

	check->result = code ? CHECK_NO : CHECK_OK;
	if (code) {
		perf_explain(code, name, &err);
		snprintf(check->found, sizeof(check->found), "%s", why_not(code));
		snprintf(check->knob, sizeof(check->knob), "%.250s", err.text);
	} else {
		snprintf(check->found, sizeof(check->found), "%s",
			 kind.exclude_kernel ? "user mode only" : "user and kernel mode");
	}
	say(check, fn, user);
	return !code;
}

static enum perf_sigtrap check_sigtrap(check_fn fn, void *user)
{
	static const char *const found[] = {
		[PERF_SIGTRAP_WORKS] = "delivered, and kept while blocked",
		[PERF_SIGTRAP_KILLS_BLOCKED] = "this kernel kills a thread that blocks SIGTRAP",
		[PERF_SIGTRAP_NONE] = "such an event cannot be opened",
		[PERF_SIGTRAP_SILENT] = "opened, but no overflow was delivered",
		[PERF_SIGTRAP_OWN_ALONE] = "not permitted for another process's threads",
	};
	struct check check = {.key = "sigtrap", .title = "Overflows by SIGTRAP"};
	enum perf_sigtrap result = perf_probe_sigtrap();

	check.result = result == PERF_SIGTRAP_WORKS ? CHECK_OK : CHECK_NO;
	snprintf(check.found, sizeof(check.found), "%s", found[result]);
	if (result == PERF_SIGTRAP_OWN_ALONE)
		snprintf(
			check.knob, sizeof(check.knob),
			"sysctl kernel.yama.ptrace_scope=1, or root; -e cpu-time needs none of it");
	else if (result != PERF_SIGTRAP_WORKS)
		snprintf(check.knob, sizeof(check.knob),
			 "Linux 5.13 or later with its fixes; -e cpu-time needs none of it");
	say(&check, fn, user);
	return result;
}

struct limit {
	const char *key, *title;
	__rlimit_resource_t resource;
	const char *why;
};

static const struct limit limits[] = {
	{"rlimit_sigpending", "Pending signals (ulimit -i)", RLIMIT_SIGPENDING,
	 "a CPU timer takes one a thread"},
	{"rlimit_nofile", "Open files (ulimit -n)", RLIMIT_NOFILE,
	 "a perf event takes one a thread, of the recorder's"},
	{"rlimit_memlock", "Locked memory (ulimit -l)", RLIMIT_MEMLOCK,
	 "for the buffers of record --wall"},
};

static void check_limit(const struct limit *limit, check_fn fn, void *user)
{
	struct check check = {.key = limit->key, .title = limit->title, .result = CHECK_INFO};
	struct rlimit value;

	if (getrlimit(limit->resource, &value) < 0)
		return;
	if (value.rlim_cur == RLIM_INFINITY)
		snprintf(check.found, sizeof(check.found), "unlimited: %s", limit->why);
	else
		snprintf(check.found, sizeof(check.found), "%llu: %s",
			 (unsigned long long)value.rlim_cur, limit->why);
	say(&check, fn, user);
}

static void check_yama(check_fn fn, void *user)
{
	struct check check = {.key = "yama", .title = "kernel.yama.ptrace_scope"};
	char text[8] = "";
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0) {
		check.result = CHECK_OK;
		snprintf(check.found, sizeof(check.found), "absent: no restriction");
	} else {
		long scope = strtol(text, NULL, 10);

		check.result = scope <= 1 || geteuid() == 0 ? CHECK_OK : CHECK_NO;
		snprintf(check.found, sizeof(check.found), "%ld%s", scope,
			 scope == 1 ? ": own children can be recorded" : "");
		if (check.result == CHECK_NO)
			snprintf(check.knob, sizeof(check.knob),
				 "sysctl kernel.yama.ptrace_scope=1 (for perf events; -e cpu-time "
				 "needs it not)");
	}
	if (fd >= 0)
		close(fd);
	say(&check, fn, user);
}

static void check_seccomp(check_fn fn, void *user)
{
	struct check check = {.key = "seccomp", .title = "Seccomp filter"};
	int mode = prctl(PR_GET_SECCOMP);

	check.result = CHECK_INFO;
	snprintf(check.found, sizeof(check.found), "%s",
		 mode == 2 ? "this process runs under one: it may forbid perf events" : "none");
	if (mode == 2)
		snprintf(check.knob, sizeof(check.knob),
			 "the container's profile (allow perf_event_open)");
	say(&check, fn, user);
}

bool event_checks(check_fn fn, void *user)
{
	struct check clock = {.key = "software_clock", .title = "Software clock (cpu-clock)"};
	struct check faults = {.key = "page_faults", .title = "Page faults (page-faults)"};
	struct check pmu = {.key = "pmu", .title = "Hardware counters (cycles)"};
	const struct perf_kind clock_kind = {.type = PERF_TYPE_SOFTWARE,
					     .config = PERF_COUNT_SW_CPU_CLOCK};
	const struct perf_kind fault_kind = {.type = PERF_TYPE_SOFTWARE,
					     .config = PERF_COUNT_SW_PAGE_FAULTS};
	const struct perf_kind cycle_kind = {.type = PERF_TYPE_HARDWARE,
					     .config = PERF_COUNT_HW_CPU_CYCLES};
	enum perf_sigtrap sigtrap;
	bool timer, event;

	check_kernel(fn, user);
	timer = check_cpu_timer(fn, user);
	check_paranoid(fn, user);
	sigtrap = check_sigtrap(fn, user);
	event = check_event(&clock, clock_kind, "cpu-clock", fn, user);
	event |= check_event(&faults, fault_kind, "page-faults", fn, user);
	event |= check_event(&pmu, cycle_kind, "cycles", fn, user);
	checks_triggers(sigtrap, fn, user);
	check_yama(fn, user);
	check_seccomp(fn, user);
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		check_limit(&limits[i], fn, user);
	return timer || (sigtrap == PERF_SIGTRAP_WORKS && event);
}
