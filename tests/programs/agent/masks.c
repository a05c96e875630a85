/* SPDX-License-Identifier: MIT */
/*
 * agent-masks: every way to block SIGTRAP, to wait with it blocked or open, and to be told of it,
 * under page-fault events. Each must do what it does without us; the kernel must have it unblocked
 * where the program blocks it (with the argument "plain": nothing of ours is expected).
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGES	 50
#define TRAP_BIT (1 << (SIGTRAP - 1))

static volatile sig_atomic_t got;
static int plain, epoll_fd, pipe_fds[2];
static sigset_t trap, none, full;

#define CHECK(condition, of)                                                   \
	do {                                                                   \
		if (!(condition)) {                                            \
			printf("%s, line %d: %s\n", of, __LINE__, #condition); \
			return 1;                                              \
		}                                                              \
	} while (0)

int old_sigpause(int mask) __asm__("sigpause");

static void note(int signo)
{
	(void)signo;
	got++;
}

static int kernel_blocks(void)
{
	uint64_t mask = 0;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof(mask));
	return (int)(mask >> (SIGTRAP - 1) & 1);
}

static int program_blocks(void)
{
	sigset_t now;

	sigprocmask(SIG_BLOCK, NULL, &now);
	return sigismember(&now, SIGTRAP);
}

static void faults(void)
{
	char *pages = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	for (int i = 0; i < PAGES; i++)
		pages[i * 4096] = 1;
	munmap(pages, PAGES * 4096);
}

/* ---- blocking ---- */

static int block(int way)
{
	switch (way) {
	case 0:
		return sigprocmask(SIG_BLOCK, &trap, NULL);
	case 1:
		return pthread_sigmask(SIG_SETMASK, &full, NULL);
	case 2:
		return sigblock(TRAP_BIT);
	case 3:
		return sigsetmask(TRAP_BIT);
	default:
		return sighold(SIGTRAP);
	}
}

static int unblock(int way)
{
	switch (way) {
	case 0:
		return sigprocmask(SIG_UNBLOCK, &trap, NULL);
	case 1:
		return pthread_sigmask(SIG_SETMASK, &none, NULL);
	case 2:
	case 3:
		return sigsetmask(0) & TRAP_BIT ? 0 : -1;
	default:
		return sigrelse(SIGTRAP);
	}
}

static int ways_to_block(void)
{
	static const char *const names[] = {"sigprocmask", "pthread_sigmask", "sigblock",
					    "sigsetmask", "sighold"};

	for (int way = 0; way < 5; way++) {
		got = 0;
		CHECK(block(way) == 0, names[way]);
		CHECK(program_blocks() && kernel_blocks() == plain, names[way]);
		faults();
		CHECK(raise(SIGTRAP) == 0 && got == 0, names[way]);
		CHECK(unblock(way) == 0 && got == 1, names[way]);
		CHECK(!program_blocks() && !kernel_blocks(), names[way]);
	}
	return 0;
}

/* ---- waiting with another mask ---- */

static int wait_with(int way, const sigset_t *mask)
{
	struct pollfd polled = {.fd = pipe_fds[0], .events = POLLIN};
	struct epoll_event event;
	fd_set set;

	switch (way) {
	case 0:
		return ppoll(&polled, 1, NULL, mask);
	case 1:
		FD_ZERO(&set);
		FD_SET(pipe_fds[0], &set);
		return pselect(pipe_fds[0] + 1, &set, NULL, NULL, NULL, mask);
	case 2:
		return epoll_pwait(epoll_fd, &event, 1, -1, mask);
	case 3:
		return epoll_pwait2(epoll_fd, &event, 1, NULL, mask);
	case 4:
		return sigsuspend(mask);
	case 5:
		return old_sigpause(0);
	default:
		return sigpause(SIGTRAP);
	}
}

static const char *const waits[] = {"ppoll",	  "pselect",  "epoll_pwait",   "epoll_pwait2",
				    "sigsuspend", "sigpause", "__xpg_sigpause"};

/* Blocked before and after, open meanwhile: the one that waits ends the call. */
static int open_meanwhile(void)
{
	for (int way = 0; way < 7; way++) {
		CHECK(sigprocmask(SIG_BLOCK, &trap, NULL) == 0, waits[way]);
		faults();
		got = 0;
		raise(SIGTRAP);
		CHECK(got == 0, waits[way]);
		CHECK(wait_with(way, &none) == -1 && errno == EINTR && got == 1, waits[way]);
		CHECK(program_blocks(), waits[way]);
		CHECK(sigprocmask(SIG_UNBLOCK, &trap, NULL) == 0 && got == 1, waits[way]);
		CHECK(!kernel_blocks(), waits[way]);
	}
	return 0;
}

static void *send_trap(void *to)
{
	pthread_kill(*(pthread_t *)to, SIGTRAP);
	if (write(pipe_fds[1], "", 1) != 1)
		_exit(3);
	return NULL;
}

/* The other way round: it comes when the call is over, and once. */
static int blocked_meanwhile(void)
{
	pthread_t self = pthread_self(), sender;
	char byte;

	for (int way = 0; way < 4; way++) {
		got = 0;
		sigprocmask(SIG_BLOCK, &trap, NULL); /* it must not come before the call */
		pthread_create(&sender, NULL, send_trap, &self);
		pthread_join(sender, NULL);
		CHECK(got == 0, waits[way]);
		CHECK(wait_with(way, &full) == 1 && got == 0, waits[way]);
		sigprocmask(SIG_UNBLOCK, &trap, NULL);
		CHECK(got == 1 && !kernel_blocks() && !program_blocks(), waits[way]);
		CHECK(read(pipe_fds[0], &byte, 1) == 1, waits[way]);
		pthread_create(&sender, NULL, send_trap, &self);
		while (wait_with(way, &full) < 0)
			CHECK(errno == EINTR, waits[way]);
		pthread_join(sender, NULL);
		CHECK(got == 2 && !kernel_blocks() && !program_blocks(), waits[way]);
		CHECK(read(pipe_fds[0], &byte, 1) == 1, waits[way]);
	}
	return 0;
}

/* ---- being told ---- */

static int told_by_sigwait(void)
{
	struct signalfd_siginfo told;
	int fd = signalfd(-1, &trap, SFD_NONBLOCK), signo;

	sigprocmask(SIG_BLOCK, &trap, NULL);
	faults();
	CHECK(read(fd, &told, sizeof(told)) < 0 && errno == EAGAIN, "signalfd");
	got = 0;
	raise(SIGTRAP);
	CHECK(sigwait(&trap, &signo) == 0 && signo == SIGTRAP, "sigwait");
	raise(SIGTRAP);
	CHECK(sigwaitinfo(&trap, NULL) == SIGTRAP, "sigwaitinfo");
	sigprocmask(SIG_UNBLOCK, &trap, NULL);
	CHECK(got == 0 && !kernel_blocks(), "sigwait");
	return close(fd);
}

static void *in_thread(void *expected)
{
	if (program_blocks() != *(int *)expected || (kernel_blocks() && !plain))
		return "mask of a new thread";
	faults();
	return NULL;
}

static int new_threads(void)
{
	static int yes = 1, no = 0;
	pthread_attr_t attributes;
	pthread_t thread;
	void *wrong;

	pthread_attr_init(&attributes);
	pthread_attr_setsigmask_np(&attributes, &trap);
	CHECK(pthread_create(&thread, &attributes, in_thread, &yes) == 0, "attribute");
	CHECK(pthread_join(thread, &wrong) == 0 && wrong == NULL, "attribute");
	sigprocmask(SIG_BLOCK, &trap, NULL);
	CHECK(pthread_create(&thread, NULL, in_thread, &yes) == 0, "inherited");
	CHECK(pthread_join(thread, &wrong) == 0 && wrong == NULL, "inherited");
	pthread_attr_setsigmask_np(&attributes, &none);
	CHECK(pthread_create(&thread, &attributes, in_thread, &no) == 0, "empty attribute");
	CHECK(pthread_join(thread, &wrong) == 0 && wrong == NULL, "empty attribute");
	return sigprocmask(SIG_UNBLOCK, &trap, NULL);
}

int main(int argc, char **argv)
{
	struct epoll_event event = {.events = EPOLLIN};

	plain = argc > 1 && strcmp(argv[1], "plain") == 0;
	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	sigemptyset(&none);
	sigfillset(&full);
	signal(SIGTRAP, note);
	epoll_fd = epoll_create1(0);
	if (pipe(pipe_fds) != 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, pipe_fds[0], &event) != 0)
		return 2;
	return ways_to_block() || open_meanwhile() || blocked_meanwhile() || told_by_sigwait() ||
	       new_threads();
}
