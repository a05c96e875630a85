/* SPDX-License-Identifier: MIT */
/*
 * agent-unwanted ignored|blocked SIGNO [threads]: each call that waits, while somebody sends a
 * signal that the program ignores or blocks, five times and each time when the call is asleep; then
 * it ends as it does without those, which is printed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TIMES 5

static int pipe_fds[2], queue, unwanted;
static volatile sig_atomic_t got, alarms;

static void note(int signo)
{
	if (signo == SIGALRM)
		alarms++;
	else
		got++;
}

/* Returns once @pid sleeps, or false if it is gone. */
static int await_sleep(pid_t pid)
{
	char path[64], line[512], *state;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	for (;;) {
		int fd = open(path, O_RDONLY);
		ssize_t length = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);

		close(fd);
		if (length <= 0)
			return 0;
		line[length] = '\0';
		state = strrchr(line, ')');
		if (state == NULL || state[2] == 'Z')
			return 0;
		if (state[2] == 'S')
			return 1;
		sched_yield();
	}
}

/* In a child: the signals, then what ends the call. */
static void disturb(pid_t parent, int ends)
{
	for (int i = 0; i < TIMES; i++) {
		if (!await_sleep(parent))
			_exit(1);
		kill(parent, unwanted);
	}
	await_sleep(parent);
	if (ends == SIGALRM)
		kill(parent, SIGALRM);
	else if (ends == 'm')
		msgsnd(queue, &(long[2]){1, 0}, 1, 0);
	else if (ends == 'w' && write(pipe_fds[1], "", 1) != 1)
		_exit(2);
	_exit(0);
}

#define HALF_SECOND 500000000

static long call_poll(void)
{
	return poll(NULL, 0, HALF_SECOND / 1000000);
}

static long call_nanosleep(void)
{
	return nanosleep(&(struct timespec){0, HALF_SECOND}, NULL);
}

static struct timespec deadline(clockid_t clock)
{
	struct timespec at;

	clock_gettime(clock, &at);
	at.tv_nsec += HALF_SECOND;
	at.tv_sec += at.tv_nsec / 1000000000;
	at.tv_nsec %= 1000000000;
	return at;
}

static long call_sleep_until(void)
{
	struct timespec at = deadline(CLOCK_MONOTONIC);

	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static long call_sem_timedwait(void)
{
	struct timespec at = deadline(CLOCK_REALTIME);
	sem_t none;

	sem_init(&none, 0, 0);
	return sem_timedwait(&none, &at);
}

static long call_select(void)
{
	return select(0, NULL, NULL, NULL, &(struct timeval){0, HALF_SECOND / 1000});
}

static long call_ppoll(void)
{
	sigset_t mask;

	sigprocmask(SIG_BLOCK, NULL, &mask);
	return ppoll(NULL, 0, &(struct timespec){0, HALF_SECOND}, &mask);
}

static long call_pause(void)
{
	return pause();
}

static long call_sigsuspend(void)
{
	sigset_t mask;

	sigprocmask(SIG_BLOCK, NULL, &mask);
	return sigsuspend(&mask);
}

static long call_alarmed_poll(void)
{
	return poll(NULL, 0, -1);
}

static long call_read(void)
{
	char byte;

	return read(pipe_fds[0], &byte, 1);
}

static long call_epoll_wait(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	int fd = epoll_create1(0);
	long r;

	epoll_ctl(fd, EPOLL_CTL_ADD, pipe_fds[0], &event);
	r = epoll_wait(fd, &event, 1, -1);
	if (r == 1)
		call_read();
	close(fd);
	return r;
}

static long call_msgrcv(void)
{
	return msgrcv(queue, &(long[2]){0}, 1, 0, 0);
}

static const struct {
	const char *name;
	long (*call)(void);
	int ends;
} calls[] = {
	{"poll", call_poll, 0},
	{"nanosleep", call_nanosleep, 0},
	{"clock_nanosleep", call_sleep_until, 0},
	{"sem_timedwait", call_sem_timedwait, 0},
	{"select", call_select, 0},
	{"ppoll", call_ppoll, 0},
	{"pause", call_pause, SIGALRM},
	{"sigsuspend", call_sigsuspend, SIGALRM},
	{"poll, alarmed", call_alarmed_poll, SIGALRM},
	{"read", call_read, 'w'},
	{"epoll_wait", call_epoll_wait, 'w'},
	{"msgrcv", call_msgrcv, 'm'},
};

static void run(size_t i)
{
	pid_t parent = getpid(), child;
	int error;
	long r;

	got = alarms = 0;
	child = fork();
	if (child == 0)
		disturb(parent, calls[i].ends);
	errno = 0;
	r = calls[i].call();
	error = errno;
	while (waitpid(child, NULL, 0) < 0)
		;
	printf("%s: %ld %s, %d handled, %d alarms\n", calls[i].name, r,
	       r < 0 ? strerror(error) : "", got, alarms);
}

/* libc's calls look otherwise in a program of several threads. */
static void *be_there(void *nothing)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	for (;;)
		pause();
	return nothing;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = note};
	pthread_t thread;
	sigset_t mask;

	if (argc < 3 || pipe(pipe_fds) != 0)
		return 2;
	unwanted = atoi(argv[2]);
	queue = msgget(IPC_PRIVATE, 0600);
	sigaction(SIGALRM, &action, NULL);
	if (argv[1][0] == 'i')
		action.sa_handler = SIG_IGN;
	sigaction(unwanted, &action, NULL);
	sigemptyset(&mask);
	sigaddset(&mask, unwanted);
	if (argv[1][0] == 'b')
		sigprocmask(SIG_BLOCK, &mask, NULL);
	if (argc > 3)
		pthread_create(&thread, NULL, be_there, NULL);
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		run(i);
	msgctl(queue, IPC_RMID, NULL);
	got = 0;
	sigprocmask(SIG_UNBLOCK, &mask, NULL);
	printf("%d at the end\n", got);
	return 0;
}
