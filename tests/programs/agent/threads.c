/* SPDX-License-Identifier: MIT */
/* Threads that end in every way, under ticks. Each case prints what is left of us, one "key value".
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static atomic_int stop, running;

/* About @us of this thread's CPU time. */
static void burn(long us)
{
	struct timespec start, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	do {
		for (volatile int i = 0; i < 1000; i++)
			;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000000 + (now.tv_nsec - start.tv_nsec) / 1000 < us);
}

static long field(const char *path, const char *name)
{
	char line[256];
	long n = 0;
	FILE *file = fopen(path, "r");

	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, name, strlen(name)) == 0)
			n = name[0] == 'I' ? n + 1 : strtol(line + strlen(name), NULL, 10);
	if (file != NULL)
		fclose(file);
	return n;
}

static void print_left(void)
{
	printf("timers %ld\nsigq %ld\n", field("/proc/self/timers", "ID:"),
	       field("/proc/self/status", "SigQ:"));
}

static void *return_argument(void *argument)
{
	prctl(PR_SET_NAME, "returns");
	burn(20000);
	return argument;
}

static void *exit_with_argument(void *argument)
{
	burn(20000);
	pthread_exit(argument);
}

static void *wait_for_cancel(void *argument)
{
	atomic_fetch_add(&running, 1);
	burn(20000);
	for (;;)
		pause();
	return argument;
}

static void *spin_for_cancel(void *argument)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	atomic_fetch_add(&running, 1);
	for (;;)
		;
	return argument;
}

static int c11_return(void *argument)
{
	burn(20000);
	return (int)(long)argument;
}

static int c11_exit(void *argument)
{
	burn(20000);
	thrd_exit((int)(long)argument);
}

static int join_is(pthread_t thread, void *expected)
{
	void *result;

	return pthread_join(thread, &result) == 0 && result == expected;
}

static int case_ends(void)
{
	pthread_t posix[4];
	thrd_t c11[2];
	int ok = 1, result;

	pthread_create(&posix[0], NULL, return_argument, (void *)11);
	pthread_create(&posix[1], NULL, exit_with_argument, (void *)22);
	pthread_create(&posix[2], NULL, wait_for_cancel, NULL);
	pthread_create(&posix[3], NULL, spin_for_cancel, NULL);
	thrd_create(&c11[0], c11_return, (void *)33);
	thrd_create(&c11[1], c11_exit, (void *)44);
	while (atomic_load(&running) != 2)
		sched_yield();
	pthread_cancel(posix[2]);
	pthread_cancel(posix[3]);
	ok &= join_is(posix[0], (void *)11) && join_is(posix[1], (void *)22);
	ok &= join_is(posix[2], PTHREAD_CANCELED) && join_is(posix[3], PTHREAD_CANCELED);
	ok &= thrd_join(c11[0], &result) == thrd_success && result == 33;
	ok &= thrd_join(c11[1], &result) == thrd_success && result == 44;
	printf("results %d\n", ok);
	print_left();
	return !ok;
}

static void *nothing(void *argument)
{
	burn(50);
	return argument;
}

static int case_many(int n)
{
	pthread_t thread;

	print_left();
	for (int i = 0; i < n; i++)
		if (pthread_create(&thread, NULL, nothing, NULL) != 0 ||
		    pthread_join(thread, NULL) != 0)
			return 1;
	print_left();
	return 0;
}

static void *spin(void *argument)
{
	atomic_fetch_add(&running, 1);
	while (!atomic_load(&stop))
		burn(1000);
	/* Each thread has the new id only if the signal reached its handler in libc. */
	return (void *)(syscall(SYS_geteuid) == (long)argument ? NULL : argument);
}

static int case_setid(void)
{
	pthread_t threads[4];
	int bad = 0;

	for (long i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, spin, (void *)1234L);
	while (atomic_load(&running) != 4)
		sched_yield();
	for (int i = 0; i < 301; i++)
		bad += setresuid(0, i % 2 == 0 ? 1234 : 0, 0) != 0;
	atomic_store(&stop, 1);
	for (int i = 0; i < 4; i++)
		bad += !join_is(threads[i], NULL);
	printf("bad %d\n", bad);
	return bad != 0;
}

static int case_cancel(void)
{
	int bad = 0;

	for (int i = 0; i < 200; i++) {
		pthread_t thread;

		atomic_store(&running, 0);
		pthread_create(&thread, NULL, spin_for_cancel, NULL);
		while (atomic_load(&running) == 0)
			sched_yield();
		pthread_cancel(thread);
		bad += !join_is(thread, PTHREAD_CANCELED);
	}
	printf("bad %d\n", bad);
	print_left();
	return bad != 0;
}

static void *fault(void *argument)
{
	for (long i = 0; i < (long)argument; i++) {
		char *page = malloc(1 << 20);

		for (int at = 0; at < 1 << 20; at += 4096)
			((volatile char *)page)[at] = 1;
		free(page);
	}
	return NULL;
}

static int case_faults(void)
{
	pthread_t thread;

	fault((void *)20L);
	pthread_create(&thread, NULL, fault, (void *)20L);
	pthread_join(thread, NULL);
	return 0;
}

/* The recorder, our parent, dies: the timer of this thread must go quiet within ten seconds. */
static int case_orphan(void)
{
	struct itimerspec left;

	kill(getppid(), SIGUSR1);
	for (int i = 0; i < 1000; i++) {
		burn(10000);
		if (syscall(SYS_timer_gettime, 0, &left) == 0 && left.it_interval.tv_nsec == 0 &&
		    left.it_value.tv_sec == 0 && left.it_value.tv_nsec == 0)
			return 7;
	}
	return 8;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0;

	if (strcmp(name, "ends") == 0)
		return case_ends();
	if (strcmp(name, "many") == 0)
		return case_many(n);
	if (strcmp(name, "setid") == 0)
		return case_setid();
	if (strcmp(name, "cancel") == 0)
		return case_cancel();
	if (strcmp(name, "faults") == 0)
		return case_faults();
	if (strcmp(name, "orphan") == 0)
		return case_orphan();
	if (strcmp(name, "burn") == 0) {
		burn(n * 1000L);
		print_left();
		return 7;
	}
	return 125;
}
