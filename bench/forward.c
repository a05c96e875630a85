/* SPDX-License-Identifier: MIT */
/*
 * What it costs to forward one overflow to the thread that caused it, with an empty handler.
 *
 * Each way is measured as the same loop with and without it, so that what is left is the
 * forwarding alone: a loop that touches fresh pages (one page fault each, event page-faults,
 * period 1), minus the loop without an event. Beside it the floor of everything made of signals,
 * tgkill to self, and the way of the paper: O_ASYNC with F_SETSIG and F_SETOWN_EX, one shot,
 * re-armed with IOC_REFRESH.
 *
 * Output: one JSON object, nanoseconds per event, medians over the rounds; rounds alternate between
 * the ways, so that a noisy neighbour falls on all of them.
 *
 * usage: forward [EVENTS [ROUNDS]]
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGES	   4096 /* touched in one go, then dropped: 16 MiB */
#define ROUNDS_MAX 64

enum way { WAY_NONE, WAY_SIGTRAP, WAY_ASYNC, WAY_TGKILL, NR_WAYS };

static volatile uint64_t delivered; /* signals handled, all ways */

static void empty_handler(int signal_number, siginfo_t *info, void *context)
{
	(void)signal_number;
	(void)info;
	(void)context;
	delivered++;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void take_signal(int signal_number)
{
	struct sigaction action = {.sa_sigaction = empty_handler,
				   .sa_flags = SA_SIGINFO | SA_RESTART};

	sigaction(signal_number, &action, NULL);
}

/* Opens the event for this thread, disabled; -1 with errno where that is refused. */
static int open_page_faults(enum way way)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = 1,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = (pid_t)syscall(SYS_gettid)};
	int fd;

	if (way == WAY_SIGTRAP) {
		attr.sigtrap = 1;
		attr.remove_on_exec = 1;
	}
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0 || way == WAY_SIGTRAP)
		return fd;
	if (fcntl(fd, F_SETFL, O_ASYNC) || fcntl(fd, F_SETSIG, SIGRTMIN + 4) ||
	    fcntl(fd, F_SETOWN_EX, &owner)) {
		close(fd);
		return -1;
	}
	return fd;
}

/*
 * Touches @events fresh pages; returns the time of the touching alone. @rearm_fd, if not -1, is
 * armed for one more overflow before each touch: the handler of a page-fault event cannot do
 * that itself, since the re-armed event meets the same fault again.
 */
static uint64_t touch_pages(volatile uint8_t *pages, uint64_t events, int rearm_fd)
{
	const long page_bytes = sysconf(_SC_PAGESIZE);
	uint64_t spent = 0;

	for (uint64_t done = 0; done < events; done += PAGES) {
		madvise((void *)(uintptr_t)pages, (size_t)PAGES * (size_t)page_bytes,
			MADV_DONTNEED);
		uint64_t start = now_ns();
		for (long page = 0; page < PAGES; page++) {
			if (rearm_fd >= 0)
				ioctl(rearm_fd, PERF_EVENT_IOC_REFRESH, 1);
			pages[page * page_bytes] = 1;
		}
		spent += now_ns() - start;
	}
	return spent;
}

static uint64_t send_signals(uint64_t events)
{
	const pid_t pid = getpid();
	const long tid = syscall(SYS_gettid);
	uint64_t start = now_ns();

	for (uint64_t i = 0; i < events; i++)
		syscall(SYS_tgkill, pid, tid, SIGUSR1);
	return now_ns() - start;
}

/* One round of one way: nanoseconds per event; negative where the way is refused here. */
static double measure(enum way way, volatile uint8_t *pages, uint64_t events)
{
	uint64_t spent;
	int fd = -1;

	if (way == WAY_TGKILL)
		return (double)send_signals(events) / (double)events;
	if (way != WAY_NONE) {
		fd = open_page_faults(way);
		if (fd < 0)
			return -errno;
		if (way == WAY_SIGTRAP)
			ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	}
	spent = touch_pages(pages, events, way == WAY_ASYNC ? fd : -1);
	if (fd >= 0)
		close(fd);
	return (double)spent / (double)events;
}

static int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double median(double *values, int number)
{
	qsort(values, (size_t)number, sizeof(*values), compare_doubles);
	return values[number / 2];
}

int main(int argc, char **argv)
{
	uint64_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
	int rounds = argc > 2 ? atoi(argv[2]) : 5;
	double results[NR_WAYS][ROUNDS_MAX];
	uint64_t per_round;
	volatile uint8_t *pages;

	if (rounds < 1 || rounds > ROUNDS_MAX || events < (uint64_t)rounds * PAGES)
		return 2;
	per_round = (events / (uint64_t)rounds + PAGES - 1) / PAGES * PAGES;
	pages = mmap(NULL, (size_t)PAGES * (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return 125;
	madvise((void *)(uintptr_t)pages, (size_t)PAGES * (size_t)sysconf(_SC_PAGESIZE),
		MADV_NOHUGEPAGE);
	take_signal(SIGTRAP);
	take_signal(SIGUSR1);
	take_signal(SIGRTMIN + 4);
	take_signal(SIGIO);
	for (int round = 0; round < rounds; round++)
		for (int way = 0; way < NR_WAYS; way++)
			results[way][round] = measure((enum way)way, pages, per_round);
	printf("{\"events\": %llu, \"none_ns\": %.1f, \"sigtrap_ns\": %.1f, \"async_ns\": %.1f, "
	       "\"tgkill_ns\": %.1f, \"delivered\": %llu}\n",
	       (unsigned long long)(per_round * (uint64_t)rounds),
	       median(results[WAY_NONE], rounds), median(results[WAY_SIGTRAP], rounds),
	       median(results[WAY_ASYNC], rounds), median(results[WAY_TGKILL], rounds),
	       (unsigned long long)delivered);
	return 0;
}
