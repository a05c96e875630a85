/* SPDX-License-Identifier: MIT */
/*
 * short-threads COUNT MICROSECONDS
 *
 * A busy thread, and COUNT threads one after the other that work MICROSECONDS each. Prints what the
 * short ones had of the CPU, in ns: the process's clock less the two long threads'; the timers
 * of the process before and after; entries of the user's signal queue before and after; KiB.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static _Atomic int stop;
static long long busy_ns;
static long work_ns;

static long long clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void *busy(void *unused)
{
	while (!stop)
		;
	busy_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return unused;
}

static void *brief(void *unused)
{
	long long end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + work_ns;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		;
	return unused;
}

static int timers(void)
{
	FILE *file = fopen("/proc/self/timers", "r");
	char line[256];
	int count = 0;

	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		count += strncmp(line, "ID:", 3) == 0;
	if (file != NULL)
		fclose(file);
	return count;
}

static long queued(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	long count = -1;

	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, "SigQ: %ld", &count) == 1)
			break;
	if (file != NULL)
		fclose(file);
	return count;
}

int main(int argc, char **argv)
{
	int count = argc == 3 ? atoi(argv[1]) : 0, timers_before = timers();
	long queued_before = queued();
	struct rusage usage;
	pthread_t thread, other;

	work_ns = argc == 3 ? atol(argv[2]) * 1000 : 0;
	if (pthread_create(&other, NULL, busy, NULL) != 0)
		return 1;
	for (int i = 0; i < count; i++)
		if (pthread_create(&thread, NULL, brief, NULL) != 0 ||
		    pthread_join(thread, NULL) != 0)
			return 1;
	stop = 1;
	pthread_join(other, NULL);
	getrusage(RUSAGE_SELF, &usage);
	printf("%lld %d %d %ld %ld %ld\n",
	       clock_ns(CLOCK_PROCESS_CPUTIME_ID) - busy_ns - clock_ns(CLOCK_THREAD_CPUTIME_ID),
	       timers_before, timers(), queued_before, queued(), usage.ru_maxrss);
	return 0;
}
