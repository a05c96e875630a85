/* SPDX-License-Identifier: MIT */
/*
 * Opening a sampling event for a thread, and why that failed.
 *
 * The first period: the event is opened with it as its period, and the real one is set while it
 * is still disabled. The kernel keeps what is left of the period at the opening
 * (hwc->period_left) and only takes the new one at the next overflow; page-fault events
 * count down from period - first instead, which is as random.
 */
#include "core/perf/perf.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int perf_open_sampling(const struct perf_sampling *sampling, pid_t tid, int *ret_fd)
{
	struct perf_event_attr attr;
	long fd;
	int code;

	perf_attr_sampling(sampling, &attr);
	fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (sampling->first_period != sampling->period &&
	    ioctl((int)fd, PERF_EVENT_IOC_PERIOD, &sampling->period) < 0) {
		code = -errno;
		close((int)fd);
		return code;
	}
	*ret_fd = (int)fd;
	return 0;
}

int perf_enable(int fd)
{
	return ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0 ? -errno : 0;
}

int perf_disable(int fd)
{
	return ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) < 0 ? -errno : 0;
}

int perf_count(int fd, uint64_t *ret_count)
{
	uint64_t count;
	ssize_t length = read(fd, &count, sizeof(count));

	if (length < 0)
		return -errno;
	if (length != sizeof(count))
		return -EIO;
	*ret_count = count;
	return 0;
}

static int explain_access(int code, const char *event, struct errbuf *err)
{
	int paranoid = perf_paranoid();

	if (paranoid > 2)
		return errbuf_set(err, code,
				  "Cannot sample %s: perf events are closed to this user; set "
				  "kernel.perf_event_paranoid to 2 or less (it is %d), or use "
				  "-e cpu-time",
				  event, paranoid);
	return errbuf_set(err, code,
			  "Cannot sample %s: not permitted for this thread; the program is another "
			  "user's or not dumpable, or kernel.yama.ptrace_scope forbids it, or "
			  "kernel.perf_event_paranoid (%d) does; use -e cpu-time",
			  event, paranoid);
}

int perf_explain(int code, const char *event, struct errbuf *err)
{
	switch (-code) {
	case EACCES:
		return explain_access(code, event, err);
	case EPERM:
	case ENOSYS:
		return errbuf_set(err, code,
				  "Cannot sample %s: perf_event_open is forbidden (%s), as "
				  "container runtimes do by seccomp; allow the system call, or use "
				  "-e cpu-time",
				  event, code == -EPERM ? "EPERM" : "ENOSYS");
	case ENOENT:
	case EOPNOTSUPP:
	case ENODEV:
		return errbuf_set(
			err, code,
			"Cannot sample %s: this machine has no counter for it (no PMU, or "
			"one without overflow interrupts); use -e cpu-time or -e cpu-clock",
			event);
	case EINVAL:
		return errbuf_set(err, code,
				  "Cannot sample %s: the kernel refuses the event's attributes; "
				  "sampling by SIGTRAP needs Linux 5.13 or later",
				  event);
	case EMFILE:
	case ENFILE:
		return errbuf_set(err, code,
				  "Cannot sample %s: out of file descriptors, one a thread is "
				  "needed; raise the hard limit (ulimit -Hn)",
				  event);
	case ESRCH:
		return errbuf_set(err, code, "Cannot sample %s: the thread is gone", event);
	default:
		return errbuf_set(err, code,
				  "Cannot sample %s: perf_event_open failed with errno %d", event,
				  -code);
	}
}
