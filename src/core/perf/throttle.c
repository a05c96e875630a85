/* SPDX-License-Identifier: MIT */
/*
 * The kernel's throttling: an event that overflows more often than
 * kernel.perf_event_max_sample_rate is stopped until the next scheduler tick. PERF_RECORD_THROTTLE
 * says so to a ring buffer, which an event that signals has not; its times go on, and a counter's
 * count stands still, so that nothing about it looks wrong.
 *
 * A second event that counts the same without sampling is never stopped: what it has more was
 * missed. Measured on an Arm PMU: 22 events apart in 60 million, and 2,721,496 of 60,001,051
 * counted where the rate was too high. It takes a counter, so it is opened only for what could be
 * throttled. A software clock needs none: it must count the time for which it was on a CPU.
 *
 * Other software events, breakpoints and tracepoints are not throttled (the kernel looks at the
 * rate only where one occurrence overflows several times), nor are events by a signal, which
 * re-arming starts again.
 */
#include "core/perf/perf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NS_PER_SECOND	      1000000000ull
#define EVENTS_PER_SECOND_MAX 48000000000ull /* eight instructions a cycle at 6 GHz */

uint64_t perf_max_sample_rate(void)
{
	char text[24];
	int fd = open("/proc/sys/kernel/perf_event_max_sample_rate", O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return 0;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[length > 0 ? length : 0] = 0;
	return strtoull(text, NULL, 10);
}

bool perf_may_throttle(const struct perf_kind *kind, uint64_t period, uint64_t rate)
{
	if (!rate)
		return false;
	switch (kind->type) {
	case PERF_TYPE_SOFTWARE:
		return perf_is_clock(kind) && period < 2 * NS_PER_SECOND / rate;
	case PERF_TYPE_TRACEPOINT:
	case PERF_TYPE_BREAKPOINT:
		return false;
	default:
		return period < EVENTS_PER_SECOND_MAX / rate;
	}
}

int perf_open_counting(const struct perf_sampling *sampling, pid_t tid, int *ret_fd)
{
	struct perf_event_attr attr;
	long fd;

	perf_attr_sampling(sampling, &attr);
	attr.sample_period = 0;
	attr.sigtrap = 0;
	attr.sig_data = 0;
	attr.wakeup_events = 0;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_RUNNING;
	fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_fd = (int)fd;
	return 0;
}

int perf_reading(int fd, struct perf_reading *ret_reading)
{
	uint64_t words[2];
	ssize_t length = read(fd, words, sizeof(words));

	if (length < 0)
		return -errno;
	if (length != sizeof(words))
		return -EIO;
	*ret_reading = (struct perf_reading){.count = words[0], .running_ns = words[1]};
	return 0;
}
