/* SPDX-License-Identifier: MIT */
/*
 * Why an event cannot be opened, in one sentence: "Cannot sample EVENT: CAUSE; KNOB".
 *
 * The errnos are perf_event_open(2)'s and fcntl(2)'s; what each means here was tried or read in the
 * kernel, where one stands for several causes the likeliest comes first.
 */
#include "core/perf/perf.h"

#include <errno.h>
#include <string.h>

static int explain_access(int code, const char *event, struct errbuf *err)
{
	int paranoid = perf_paranoid();

	if (paranoid > 2)
		return errbuf_set(err, code,
				  "Cannot sample %s: perf events are closed to this user; set "
				  "kernel.perf_event_paranoid to 2 or less (it is %d)",
				  event, paranoid);
	return errbuf_set(err, code,
			  "Cannot sample %s: not permitted for this thread; the program is another "
			  "user's or not dumpable, or kernel.yama.ptrace_scope forbids it, or "
			  "kernel.perf_event_paranoid (%d) does",
			  event, paranoid);
}

/* Causes with one sentence each; %s is the event. */
static const struct {
	int number;
	const char *sentence;
} causes[] = {
	{EPERM, "perf_event_open is forbidden (EPERM), as container runtimes do by seccomp; allow "
		"the system call"},
	{ENOSYS, "perf_event_open is forbidden (ENOSYS), as container runtimes do by seccomp; "
		 "allow the system call"},
	{ENOENT, "there is no hardware counter for it here (no PMU, as in most virtual machines); "
		 "only the machine or its host can change that"},
	{ENODEV, "there is no hardware counter for it here (no PMU driver for this processor); a "
		 "newer kernel may have one"},
	{EOPNOTSUPP, "its counter raises no interrupt here (no PMU or half a one, as in virtual "
		     "machines); only the machine or its host can change that"},
	{EINVAL, "the kernel refuses the event's attributes; sampling by SIGTRAP needs Linux 5.13 "
		 "or later"},
	{E2BIG, "the kernel does not know all attributes of the event; sampling by SIGTRAP needs "
		"Linux 5.13 or later"},
	{EMFILE, "out of file descriptors, one a thread is needed; raise the hard limit (ulimit "
		 "-Hn)"},
	{ENFILE, "the whole system is out of file descriptors; raise fs.file-max"},
	{EAGAIN, "the budget of memory for perf buffers or of queued signals is used up; raise "
		 "kernel.perf_event_mlock_kb or ulimit -i"},
	{ENOMEM, "out of memory for perf buffers; raise kernel.perf_event_mlock_kb or ulimit -l"},
	{EBUSY, "somebody else has the counter to himself (another profiler, or the NMI watchdog); "
		"end it, or set kernel.nmi_watchdog to 0"},
	{ENOSPC,
	 "all hardware breakpoints or counters are taken; end the debugger or profiler that "
	 "holds them, or sample fewer"},
	{ESRCH, "the thread is gone; nothing needs to be done"},
};

int perf_explain(int code, const char *event, struct errbuf *err)
{
	if (code == -EACCES)
		return explain_access(code, event, err);
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		if (causes[i].number == -code)
			return errbuf_set(err, code, "Cannot sample %s: %s", event,
					  causes[i].sentence);
	}
	return errbuf_set(err, code,
			  "Cannot sample %s: perf_event_open failed with errno %d (%s); see "
			  "pathprof doctor",
			  event, -code, strerror(-code));
}
