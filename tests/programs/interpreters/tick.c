/* SPDX-License-Identifier: MIT */
/*
 * Has a thread look at itself from a signal handler while it waits in a system call. The handler
 * calls what a handler may not; the thread is in no such function, since it waits.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>

#define TICK __attribute__((visibility("default")))

TICK int tick_start(int (*walk)(size_t max, char *text, size_t size));
TICK int tick_thread(unsigned long thread, char *text, size_t size);

static struct {
	int (*walk)(size_t max, char *text, size_t size);
	sem_t done;
	char *text;
	size_t size;
	int rc;
} tick;

static void on_signal(int signal_number)
{
	int saved_errno = errno;

	(void)signal_number;
	tick.rc = tick.walk(1024, tick.text, tick.size);
	sem_post(&tick.done);
	errno = saved_errno;
}

/* @walk: probe_walk(), of a library that is loaded already. */
TICK int tick_start(int (*walk)(size_t max, char *text, size_t size))
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	tick.walk = walk;
	if (sem_init(&tick.done, 0, 0))
		return -1;
	return sigaction(SIGUSR2, &action, NULL);
}

/* What @thread, which waits, finds on its own stack. */
TICK int tick_thread(unsigned long thread, char *text, size_t size)
{
	tick.text = text;
	tick.size = size;
	if (pthread_kill((pthread_t)thread, SIGUSR2))
		return -1;
	while (sem_wait(&tick.done))
		;
	return tick.rc;
}
