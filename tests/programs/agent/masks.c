/* SPDX-License-Identifier: MIT */
/*
 * agent-masks: every way to block SIGTRAP, to wait with it blocked or open, and to be told of it,
 * under page-fault events. Each must do what it does without us; the kernel must have it unblocked
 * where the program blocks it (with the argument "plain": nothing of ours is expected).
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
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

/* ---- masks that are copied and put back without a call of ours ---- */

/* Is the signal blocked, in every way in which that shows? */
static int is_blocked(void)
{
	int before = got, blocked = program_blocks();

	raise(SIGTRAP);
	if (blocked != (got == before))
		return -1;
	if (blocked) {
		sigprocmask(SIG_UNBLOCK, &trap, NULL);
		sigprocmask(SIG_BLOCK, &trap, NULL);
		if (got != before + 1)
			return -1;
	}
	return blocked;
}

static void block_for_a_while(int signo)
{
	(void)signo;
	sigprocmask(SIG_BLOCK, &trap, NULL);
}

static int handlers_end(void)
{
	signal(SIGUSR1, block_for_a_while);
	raise(SIGUSR1);
	CHECK(is_blocked() == 0, "end of a handler");
	return 0;
}

static int jumps(void)
{
	static sigjmp_buf env;

	if (sigsetjmp(env, 1) == 0) {
		sigprocmask(SIG_BLOCK, &trap, NULL);
		siglongjmp(env, 1);
	}
	CHECK(is_blocked() == 0, "siglongjmp to open");
	sigprocmask(SIG_BLOCK, &trap, NULL);
	if (sigsetjmp(env, 1) == 0) {
		sigprocmask(SIG_UNBLOCK, &trap, NULL);
		siglongjmp(env, 1);
	}
	CHECK(is_blocked() == 1, "siglongjmp to blocked");
	sigprocmask(SIG_UNBLOCK, &trap, NULL);
	return 0;
}

static int contexts(void)
{
	static volatile int again;
	ucontext_t context;

	getcontext(&context);
	if (!again) {
		again = 1;
		sigprocmask(SIG_BLOCK, &trap, NULL);
		setcontext(&context);
	}
	CHECK(is_blocked() == 0, "setcontext");
	return 0;
}

static int children(void)
{
	pid_t child = vfork();

	if (child == 0) {
		sigprocmask(SIG_BLOCK, &trap, NULL);
		_exit(program_blocks());
	}
	CHECK(child > 0 && is_blocked() == 0, "vfork");
	child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (child == 0) {
		sigprocmask(SIG_BLOCK, &trap, NULL);
		syscall(SYS_exit, program_blocks());
	}
	for (int i = 0, status; i < 2; i++)
		CHECK(wait(&status) > 0 && WEXITSTATUS(status) == 1, "mask of a child");
	CHECK(is_blocked() == 0, "clone");
	return 0;
}

static int spawned(void)
{
	char *argv[] = {"grep", "-q", "^SigBlk:\\s*0*10$", "/proc/self/status", NULL};
	pid_t child;
	int status;

	sigprocmask(SIG_BLOCK, &trap, NULL);
	CHECK(posix_spawnp(&child, argv[0], NULL, NULL, argv, environ) == 0, "posix_spawn");
	CHECK(waitpid(child, &status, 0) == child && status == 0, "mask after posix_spawn");
	CHECK(is_blocked() == 1, "the spawning one's mask");
	sigprocmask(SIG_UNBLOCK, &trap, NULL);
	return 0;
}

static volatile sig_atomic_t got_inside, blocked_inside;

static void raise_inside(int signo)
{
	static int depth;
	int before = got;

	if (depth++ > 0) { /* of SIGTRAP's own: after the first is over, or inside? */
		got++;
		depth = 0;
		return;
	}
	blocked_inside = program_blocks();
	raise(SIGTRAP);
	got_inside = got - before;
	if (signo != SIGTRAP)
		depth = 0;
}

/* Handled after the handler whose sa_mask holds it, and once. */
static int masks_of_handlers(void)
{
	struct sigaction action = {.sa_handler = raise_inside, .sa_mask = trap}, old;

	sigaction(SIGUSR1, &action, NULL);
	got = 0;
	raise(SIGUSR1);
	CHECK(blocked_inside && !got_inside && got == 1, "sa_mask");
	sigaction(SIGUSR1, NULL, &old);
	CHECK(sigismember(&old.sa_mask, SIGTRAP) && !sigismember(&old.sa_mask, 16), "sa_mask");
	sigaction(SIGTRAP, &action, NULL);
	got = got_inside = 0;
	raise(SIGTRAP);
	CHECK(blocked_inside && !got_inside && got == 1, "SIGTRAP's own handler");
	signal(SIGTRAP, note);
	return 0;
}

/* ---- being told elsewhere ---- */

static pthread_t waiter;
static volatile sig_atomic_t told_first;

static void *wait_for_it(void *ret_signo)
{
	siginfo_t info;

	if (sigwait(&full, ret_signo) != 0)
		*(int *)ret_signo = -1;
	told_first = 1;
	if (sigwaitinfo(&full, &info) != SIGTRAP || info.si_code != SI_USER ||
	    info.si_pid != getpid())
		*(int *)ret_signo = -1;
	return NULL;
}

static int told_in_another_thread(void)
{
	int signo = 0;

	got = 0;
	pthread_sigmask(SIG_SETMASK, &full, NULL);
	pthread_create(&waiter, NULL, wait_for_it, &signo);
	faults();
	kill(getpid(), SIGTRAP);
	while (!told_first)
		sched_yield();
	kill(getpid(), SIGTRAP);
	pthread_join(waiter, NULL);
	CHECK(signo == SIGTRAP && got == 0, "sigwait in a thread");
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	CHECK(got == 0 && is_blocked() == 0, "sigwait in a thread");
	return 0;
}

static int told_by_descriptor(void)
{
	struct pollfd polled = {.fd = signalfd(-1, &trap, 0), .events = POLLIN};
	struct signalfd_siginfo told;

	got = 0;
	sigprocmask(SIG_BLOCK, &trap, NULL);
	faults();
	kill(getpid(), SIGTRAP);
	CHECK(poll(&polled, 1, 10000) == 1, "signalfd");
	CHECK(read(polled.fd, &told, sizeof(told)) == sizeof(told), "signalfd");
	CHECK(told.ssi_signo == SIGTRAP && told.ssi_code == SI_USER, "signalfd");
	sigprocmask(SIG_UNBLOCK, &trap, NULL);
	CHECK(got == 0 && is_blocked() == 0, "signalfd");
	return close(polled.fd);
}

static int interrupts(void)
{
	struct sigaction action;

	signal(SIGTRAP, note);
	CHECK(siginterrupt(SIGTRAP, 1) == 0 && sigaction(SIGTRAP, NULL, &action) == 0,
	      "siginterrupt");
	CHECK(!(action.sa_flags & SA_RESTART) && action.sa_handler == note, "siginterrupt");
	signal(SIGTRAP, note);
	CHECK(sigaction(SIGTRAP, NULL, &action) == 0 && !(action.sa_flags & SA_RESTART), "signal");
	CHECK(siginterrupt(SIGTRAP, 0) == 0 && sigaction(SIGTRAP, NULL, &action) == 0,
	      "siginterrupt");
	CHECK(action.sa_flags & SA_RESTART, "siginterrupt");
	return 0;
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
	       new_threads() || handlers_end() || jumps() || contexts() || children() ||
	       spawned() || masks_of_handlers() || told_in_another_thread() ||
	       told_by_descriptor() || interrupts();
}
