/* SPDX-License-Identifier: MIT */
/*
 * Opening a sampling event for a thread.
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
