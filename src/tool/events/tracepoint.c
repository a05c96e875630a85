/* SPDX-License-Identifier: MIT */
/*
 * Why not all tracepoints. The signal of one inside a system call waits for the call's end. Where
 * the call then waits, and is broken off by no signal of the program's (a stop and a continuation,
 * a debugger that attaches), the kernel would have it go on; with our signal pending, poll(),
 * select(), nanosleep() and their like fail with EINTR instead (measured on Linux 6.18). Calls that
 * begin again for a handler with SA_RESTART, such as read(), are right. So what a thread meets on
 * its way into such a wait is refused: the calls' entries, and the groups of which the kernel has
 * tracepoints there.
 */
#include "tool/events/tracepoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyz0123456789_"
#define UPPER	"ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* The delivery of one signal meets no tracepoint more than a few times; a prime. */
#define PERIOD_MIN 101

static const char *const roots[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

#define NR_ROOTS (sizeof(roots) / sizeof(roots[0]))

static bool begins(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

bool tracepoint_is_name(const char *name)
{
	size_t group = strspn(name, LETTERS "-");

	return group && name[group] == ':' && name[group + 1] &&
	       !name[group + 1 + strspn(name + group + 1, LETTERS UPPER)];
}

/* Calls of signal(7) that a handler ends whatever its SA_RESTART; a '*' stands for any ending. */
static const char *const waiting_calls[] = {
	"clock_nanosleep*", "epoll_pwait*",   "epoll_wait*",	 "futex*",
	"io_getevents*",    "io_pgetevents*", "io_uring_enter",	 "msgrcv",
	"msgsnd",	    "nanosleep",      "pause",		 "poll",
	"ppoll*",	    "pselect6*",      "restart_syscall", "rt_sigsuspend",
	"rt_sigtimedwait*", "select",	      "semop",		 "semtimedop*",
	"_newselect",
};

/* Groups whose tracepoints stand on the way into a wait or out of it, or in interrupts. */
static const char *const waiting_groups[] = {
	"alarmtimer", "csd",   "ipi",	 "irq",	  "irq_matrix",	     "irq_vectors",
	"lock",	      "msr",   "nmi",	 "power", "raw_syscalls",    "rcu",
	"rseq",	      "sched", "signal", "timer", "timer_migration", "watchdog",
	"workqueue",
};

static bool is_one_of(const char *const *patterns, size_t nr, const char *word, size_t length)
{
	for (size_t i = 0; i < nr; i++) {
		size_t fixed = strcspn(patterns[i], "*");

		if (length >= fixed && !strncmp(patterns[i], word, fixed) &&
		    (length == fixed || patterns[i][fixed]))
			return true;
	}
	return false;
}

int tracepoint_refuse(const char *name, struct errbuf *err)
{
	static const char enter[] = "syscalls:sys_enter_";
	const char *call = name + sizeof(enter) - 1;

	if (is_one_of(waiting_groups, sizeof(waiting_groups) / sizeof(waiting_groups[0]), name,
		      strcspn(name, ":")))
		return errbuf_set(
			err, -ENOTSUP,
			"Cannot sample %s: it belongs to threads that wait or are about to, "
			"which a signal would disturb; record with --wall to see waits",
			name);
	if (begins(name, "syscalls:sys_exit_"))
		return errbuf_set(err, -ENOTSUP,
				  "Cannot sample %s: the call that ends may have waited and have "
				  "been broken off, which a signal would hide; sample its "
				  "sys_enter, or record with --wall to see waits",
				  name);
	if (begins(name, enter) &&
	    is_one_of(waiting_calls, sizeof(waiting_calls) / sizeof(waiting_calls[0]), call,
		      strcspn(call, ":")))
		return errbuf_set(
			err, -ENOTSUP,
			"Cannot sample %s: the call waits, and with a signal pending fails "
			"where a stop and a continuation would have it go on; record with "
			"--wall to see waits",
			name);
	return 0;
}

static int explain_unreadable(const char *name, int code, struct errbuf *err)
{
	if (code == -EACCES || code == -EPERM)
		return errbuf_set(err, -EACCES,
				  "Cannot sample %s: tracefs is closed to this user; as root, "
				  "'mount -o remount,gid=GROUP,mode=750 /sys/kernel/tracing' opens "
				  "it",
				  name);
	for (size_t i = 0; i < NR_ROOTS; i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s/events", roots[i]);
		if (!access(path, F_OK))
			return errbuf_set(err, -ENOENT,
					  "'%s' is no tracepoint of this kernel: see %s", name,
					  path);
	}
	return errbuf_set(err, -ENODEV,
			  "Cannot sample %s: tracefs is not mounted; as root, 'mount -t tracefs "
			  "nodev /sys/kernel/tracing'",
			  name);
}

/* Returns 0 or the negative errno of the last root that was tried. */
static int read_number(const char *name, uint64_t *ret_number)
{
	size_t group = strcspn(name, ":");
	int code = -ENOENT;

	for (size_t i = 0; i < NR_ROOTS; i++) {
		char path[256], text[24] = "";
		int fd;

		if ((size_t)snprintf(path, sizeof(path), "%s/events/%.*s/%s/id", roots[i],
				     (int)group, name, name + group + 1) >= sizeof(path))
			return -ENOENT;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0) {
			code = code == -EACCES ? code : -errno;
			continue;
		}
		if (read(fd, text, sizeof(text) - 1) > 0)
			*ret_number = strtoull(text, NULL, 10);
		close(fd);
		return *text ? 0 : -EIO;
	}
	return code;
}

int tracepoint_number(const char *name, uint64_t *ret_number, struct errbuf *err)
{
	int code = read_number(name, ret_number);

	return code ? explain_unreadable(name, code, err) : 0;
}

uint64_t tracepoint_period_min(const char *name)
{
	/* Calls that the handler makes. */
	static const char *const own[] = {"syscalls:sys_enter_rt_sigreturn",
					  "syscalls:sys_enter_rt_sigpending"};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		if (!strcmp(name, own[i]))
			return PERIOD_MIN;
	}
	return begins(name, "syscalls:sys_enter_") || begins(name, "exceptions:page_fault_user")
		       ? 1
		       : PERIOD_MIN;
}
