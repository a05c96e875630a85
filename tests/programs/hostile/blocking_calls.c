/* SPDX-License-Identifier: MIT */
/*
 * blocking-calls MILLISECONDS
 *
 * Blocking calls of many kinds under ticks, with work and page faults between them: prints how many
 * there were and how many gave EINTR. Then the program's own alarm() without SA_RESTART: its read()
 * must give EINTR; and with SA_RESTART: it must not, the alarm's handler writes what it waits for.
 */
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define PAGES 16

static int pipe_fds[2];
static sem_t semaphore;

static long long now_us(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000ll + now.tv_nsec / 1000;
}

static void work(void)
{
	long long end = now_us(CLOCK_THREAD_CPUTIME_ID) + 500;
	char *pages = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	for (int i = 0; pages != MAP_FAILED && i < PAGES; i++)
		pages[i * 4096] = 1;
	munmap(pages, PAGES * 4096);
	while (now_us(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static int call(int kind)
{
	struct timespec brief = {.tv_nsec = 300000}, until;
	struct timeval wait = {.tv_usec = 300};
	struct pollfd polled = {.fd = pipe_fds[0], .events = POLLIN};
	sigset_t one;
	fd_set set;
	char byte;

	switch (kind) {
	case 0:
		return nanosleep(&brief, NULL);
	case 1:
		return poll(&polled, 1, 1);
	case 2:
		FD_ZERO(&set);
		FD_SET(pipe_fds[0], &set);
		return select(pipe_fds[0] + 1, &set, NULL, NULL, &wait);
	case 3:
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 300000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		return sem_timedwait(&semaphore, &until);
	case 4:
		sigemptyset(&one);
		sigaddset(&one, SIGUSR1);
		return sigtimedwait(&one, NULL, &brief);
	case 5:
		return ppoll(&polled, 1, &brief, NULL);
	default:
		return (int)recv(pipe_fds[0], &byte, 1, 0); /* SO_RCVTIMEO: EINTR, not restarted */
	}
}

static volatile sig_atomic_t reading, missed;

static void on_alarm(int signo)
{
	(void)signo;
	missed += reading;
	if (write(pipe_fds[1], "x", 1) != 1)
		_exit(3);
}

static void nothing(int signo)
{
	(void)signo;
	missed += reading;
}

static int own_alarm(int restart)
{
	struct sigaction action = {.sa_handler = restart ? on_alarm : nothing,
				   .sa_flags = restart ? SA_RESTART : 0};
	struct itimerval soon = {.it_value = {.tv_usec = 20000}, .it_interval = {.tv_usec = 20000}};
	const struct itimerval never = {0};
	struct timeval forever = {0};
	char byte;
	ssize_t n;

	setsockopt(pipe_fds[0], SOL_SOCKET, SO_RCVTIMEO, &forever, sizeof(forever));
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	work();
	missed = 0;
	reading = 1;
	n = read(pipe_fds[0], &byte, 1);
	reading = 0;
	setitimer(ITIMER_REAL, &never, NULL);
	if (missed > 1)
		return 0; /* the first that met the read did not end it */
	return restart ? n == 1 : n < 0 && errno == EINTR;
}

int main(int argc, char **argv)
{
	long long end = now_us(CLOCK_MONOTONIC) + (argc > 1 ? atoi(argv[1]) : 0) * 1000ll;
	struct timeval wait = {.tv_usec = 300};
	long calls = 0, broken = 0;
	int alarms = 0;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pipe_fds) != 0 || sem_init(&semaphore, 0, 0) != 0)
		return 1;
	setsockopt(pipe_fds[0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	while (now_us(CLOCK_MONOTONIC) < end) {
		/* Now and then longer than the tick, which misses short bursts. */
		for (int i = calls % 70 == 0 ? 20 : 1; i > 0; i--)
			work();
		for (int kind = 0; kind < 7; kind++, calls++)
			if (call(kind) < 0 && errno == EINTR)
				broken++;
	}
	for (int i = 0; i < 20; i++)
		alarms += own_alarm(0) + own_alarm(1);
	printf("%ld %ld %d\n", calls, broken, alarms);
	return 0;
}
