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

#define PTRACE_SCOPE_CHILDREN 1 /* YAMA's: whoever is descended from us is open to us */

static int explain_access(int code, const char *event, struct errbuf *err)
{
	int paranoid = perf_paranoid(), scope = perf_ptrace_scope();

	if (paranoid > 2)
		return errbuf_set(err, code,
				  "Cannot sample %s: perf events are closed to this user; set "
				  "kernel.perf_event_paranoid to 2 or less (it is %d)",
				  event, paranoid);
	if (scope > PTRACE_SCOPE_CHILDREN)
		return errbuf_set(err, code,
				  "Cannot sample %s: not permitted for this thread; set "
				  "kernel.yama.ptrace_scope to 1 or less (it is %d)",
				  event, scope);
	return errbuf_set(err, code,
			  "Cannot sample %s: not permitted for this thread; the program is another "
			  "user's or not dumpable, or it is the kernel's side and "
			  "kernel.perf_event_paranoid (%d) is above 1; root may",
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

int perf_explain_duplicate(int code, const char *event, struct errbuf *err)
{
	int scope = perf_ptrace_scope();

	if (code == -ENOSYS)
		return errbuf_set(
			err, code,
			"Cannot sample %s: an asynchronous signal needs pidfd_getfd, "
			"which is not there (ENOSYS); Linux has it since 5.6, and seccomp "
			"must allow it",
			event);
	if (code == -EPERM && scope > PTRACE_SCOPE_CHILDREN)
		return errbuf_set(err, code,
				  "Cannot sample %s: an asynchronous signal needs pidfd_getfd, "
				  "which is forbidden; set kernel.yama.ptrace_scope to 1 or less "
				  "(it is %d)",
				  event, scope);
	if (code == -EPERM)
		return errbuf_set(err, code,
				  "Cannot sample %s: an asynchronous signal needs pidfd_getfd, "
				  "which is forbidden (EPERM), as container runtimes do by "
				  "seccomp; allow the system call",
				  event);
	return errbuf_set(err, code,
			  "Cannot sample %s: an asynchronous signal needs pidfd_getfd, which "
			  "failed with errno %d (%s); see pathprof doctor",
			  event, -code, strerror(-code));
}

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
