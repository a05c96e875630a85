/* SPDX-License-Identifier: MIT */
/*
 * Opening a sampling event for a thread.
 *
 * The first period: the event is opened with it as its period, and the real one is set once the
 * first overflow was there. Not before: PERF_EVENT_IOC_PERIOD sets what is left to 0 in any state,
 * so the next overflow is a whole new period away (measured on Linux 6.18 with page faults and
 * clocks, the event disabled). Nor while a software event counts: it would overflow at the very
 * next one, and again when the old period is over.
 *
 * By a signal: the way of the paper. O_ASYNC with F_SETSIG, which queues a siginfo that names the
 * descriptor, and F_SETOWN_EX to the very thread; one shot each time.
 */
#include "core/perf/perf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Cycles or instructions: the end of the handler runs some hundred of them. */
#define SIGNAL_PERIOD_MIN_WORK	 20000
#define SIGNAL_PERIOD_MIN_CACHES 1000

bool perf_is_clock(const struct perf_kind *kind)
{
	return kind->type == PERF_TYPE_SOFTWARE && (kind->config == PERF_COUNT_SW_CPU_CLOCK ||
						    kind->config == PERF_COUNT_SW_TASK_CLOCK);
}

bool perf_is_task_clock(const struct perf_kind *kind)
{
	return kind->type == PERF_TYPE_SOFTWARE && kind->config == PERF_COUNT_SW_TASK_CLOCK;
}

uint64_t perf_signal_period_min(const struct perf_kind *kind)
{
	switch (kind->type) {
	case PERF_TYPE_SOFTWARE:
	case PERF_TYPE_TRACEPOINT:
	case PERF_TYPE_BREAKPOINT:
		return 1; /* the handler makes none of them */
	case PERF_TYPE_HW_CACHE:
		return SIGNAL_PERIOD_MIN_CACHES;
	default:
		return SIGNAL_PERIOD_MIN_WORK;
	}
}

static int check(const struct perf_sampling *sampling)
{
	if (sampling->delivery != PERF_BY_SIGNAL)
		return 0;
	if (perf_is_clock(&sampling->kind) || sampling->inherit)
		return -EOPNOTSUPP;
	return sampling->period < perf_signal_period_min(&sampling->kind) ? -ERANGE : 0;
}

static int send_signal(int fd, int signo, pid_t tid)
{
	struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = tid ? tid : gettid()};

	/* The signal first: from O_ASYNC on an overflow would come as SIGIO without it. */
	if (fcntl(fd, F_SETSIG, signo) < 0 || fcntl(fd, F_SETOWN_EX, &owner) < 0 ||
	    fcntl(fd, F_SETFL, O_ASYNC) < 0)
		return -errno;
	return 0;
}

int perf_open_sampling(const struct perf_sampling *sampling, pid_t tid, int *ret_fd)
{
	struct perf_event_attr attr;
	int code = check(sampling);
	long fd;

	if (code)
		return code;
	perf_attr_sampling(sampling, &attr);
	fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0 && errno == EINVAL && sampling->delivery == PERF_BY_SIGNAL) {
		attr.remove_on_exec = 0; /* since Linux 5.13; whoever execs has it disabled first */
		fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	}
	if (fd < 0)
		return -errno;
	if (sampling->delivery == PERF_BY_SIGNAL)
		code = send_signal((int)fd, sampling->signo, tid);
	if (code) {
		close((int)fd);
		return code;
	}
	*ret_fd = (int)fd;
	return 0;
}

int perf_set_period(int fd, uint64_t period)
{
	return ioctl(fd, PERF_EVENT_IOC_PERIOD, &period) < 0 ? -errno : 0;
}

int perf_rearm(int fd)
{
	return ioctl(fd, PERF_EVENT_IOC_REFRESH, 1) < 0 ? -errno : 0;
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
	uint64_t words[2]; /* by SIGTRAP the time comes with the count */
	ssize_t length = read(fd, words, sizeof(words));

	if (length < 0)
		return -errno;
	if (length < (ssize_t)sizeof(words[0]))
		return -EIO;
	*ret_count = words[0];
	return 0;
}
