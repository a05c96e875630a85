/* SPDX-License-Identifier: MIT */
/*
 * What it costs to set a thread up: from before pthread_create() to the first line of its routine,
 * each thread joined before the next is made. Run plain and under a recording, the difference of
 * the medians is what the recording adds.
 *
 * Beside it, in one thread: a bare event (open, enable, close), and the way of the paper (open,
 * F_SETSIG, F_SETOWN_EX, O_ASYNC, arm, close). And the floor of what a recorder can do: the thread
 * wakes another, which opens a running event for it and wakes it in turn.
 *
 * Output: one JSON object, nanoseconds. usage: set_up [THREADS [BUSY]]; BUSY threads spin
 * meanwhile.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 100000
#define BUSY_MAX    64
#define PAUSE_US    300 /* what the last thread left to do is done */

static atomic_int over;
static uint64_t costs[THREADS_MAX];

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *note_start(void *ret_ns)
{
	*(uint64_t *)ret_ns = now_ns();
	return NULL;
}

static void *spin(void *unused)
{
	while (!atomic_load(&over))
		;
	return unused;
}

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static uint64_t part(int number, int hundredths)
{
	qsort(costs, (size_t)number, sizeof(costs[0]), compare);
	return costs[(uint64_t)number * (uint64_t)hundredths / 100];
}

static void make_threads(int number)
{
	for (int i = 0; i < number; i++) {
		uint64_t before, after;
		pthread_t thread;

		usleep(PAUSE_US);
		before = after = now_ns();
		if (pthread_create(&thread, NULL, note_start, &after) != 0)
			exit(1);
		pthread_join(thread, NULL);
		costs[i] = after - before;
	}
}

/* Returns false where events are not allowed. */
static int open_event(int paper)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_PAGE_FAULTS,
				       .sample_period = 1u << 30,
				       .disabled = 1,
				       .exclude_kernel = 1,
				       .exclude_hv = 1};
	struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = gettid()};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return 0;
	if (paper) {
		fcntl(fd, F_SETSIG, SIGRTMIN + 4);
		fcntl(fd, F_SETOWN_EX, &owner);
		fcntl(fd, F_SETFL, O_ASYNC);
		ioctl(fd, PERF_EVENT_IOC_REFRESH, 1);
	} else {
		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	}
	close(fd);
	return 1;
}

static _Atomic uint32_t asked; /* a futex: the round, odd while the other has it */

static void wait_while(uint32_t value)
{
	while (atomic_load(&asked) == value)
		syscall(SYS_futex, &asked, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void hand_over(void)
{
	atomic_fetch_add(&asked, 1);
	syscall(SYS_futex, &asked, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Opens an event for the thread *@tid whenever it is asked, until @over. */
static void *open_for(void *tid)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_PAGE_FAULTS,
				       .sample_period = 1u << 30,
				       .exclude_kernel = 1,
				       .exclude_hv = 1};

	for (uint32_t round = 0;; round += 2) {
		int fd;

		wait_while(round);
		if (atomic_load(&over))
			return NULL;
		fd = (int)syscall(SYS_perf_event_open, &attr, *(pid_t *)tid, -1, -1,
				  PERF_FLAG_FD_CLOEXEC);
		hand_over();
		if (fd >= 0)
			close(fd);
	}
}

static uint64_t cost_by_another(int number)
{
	pid_t tid = gettid();
	pthread_t other;

	if (pthread_create(&other, NULL, open_for, &tid) != 0)
		return 0;
	for (int i = 0; i < number; i++) {
		uint64_t before;

		usleep(PAUSE_US); /* it sleeps again, and so does its processor */
		before = now_ns();
		hand_over();
		wait_while(2 * (uint32_t)i + 1);
		costs[i] = now_ns() - before;
	}
	atomic_store(&over, 1);
	hand_over();
	pthread_join(other, NULL);
	return part(number, 50);
}

static uint64_t event_cost(int number, int paper)
{
	for (int i = 0; i < number; i++) {
		uint64_t before = now_ns();

		if (!open_event(paper))
			return 0;
		costs[i] = now_ns() - before;
	}
	return part(number, 50);
}

int main(int argc, char **argv)
{
	int number = argc > 1 ? atoi(argv[1]) : 10000, busy = argc > 2 ? atoi(argv[2]) : 0;
	pthread_t spinning[BUSY_MAX];
	uint64_t bare, paper, by_another, median, p99;

	if (number < 100 || number > THREADS_MAX || busy < 0 || busy > BUSY_MAX)
		return 2;
	for (int i = 0; i < busy; i++)
		pthread_create(&spinning[i], NULL, spin, NULL);
	make_threads(number);
	median = part(number, 50);
	p99 = part(number, 99);
	bare = event_cost(number, 0);
	paper = event_cost(number, 1);
	by_another = cost_by_another(number);
	for (int i = 0; i < busy; i++)
		pthread_join(spinning[i], NULL);
	printf("{\"median_ns\": %llu, \"p99_ns\": %llu, \"bare_ns\": %llu, \"paper_ns\": %llu, "
	       "\"by_another_ns\": %llu}\n",
	       (unsigned long long)median, (unsigned long long)p99, (unsigned long long)bare,
	       (unsigned long long)paper, (unsigned long long)by_another);
	return 0;
}
