/* SPDX-License-Identifier: MIT */
/*
 * What this machine and this user may do, by trying it.
 *
 * sigtrap is tried in a child process, since some kernels since 5.13 kill the process where
 * SIGTRAP is blocked at the overflow, and the fix was backported: no version tells.
 */
#include "core/perf/perf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS_MIN	 100000	  /* CONFIG_HZ 10000: none is that fast */
#define TICK_NS_MAX	 10000000 /* CONFIG_HZ 100 */
#define TICK_NS_FALLBACK 4000000  /* CONFIG_HZ 250, where the kernel tells nonsense */

#ifndef SYS_pidfd_open
#define SYS_pidfd_open	434
#define SYS_pidfd_getfd 438
#endif

enum probe_step {
	PROBE_STARTED = 0,
	PROBE_OPENED,
	PROBE_PENDED,
};

/* Returns 0 or a negative errno. */
static int read_number(const char *path, int *ret_number)
{
	char text[16];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return -errno;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		return -EIO;
	text[length] = 0;
	*ret_number = (int)strtol(text, NULL, 10);
	return 0;
}

int perf_paranoid(void)
{
	int level = 0, code = read_number("/proc/sys/kernel/perf_event_paranoid", &level);

	return code ? code - 1000 : level;
}

int perf_ptrace_scope(void)
{
	int scope = 0;

	(void)read_number("/proc/sys/kernel/yama/ptrace_scope", &scope);
	return scope;
}

/* A period that no probe reaches. */
static int try_open(const struct perf_kind *kind, enum perf_delivery delivery)
{
	struct perf_sampling sampling = {
		.delivery = delivery, .kind = *kind, .period = 1u << 30, .first_period = 1u << 30};
	int fd, code = perf_open_sampling(&sampling, 0, &fd);

	if (!code)
		close(fd);
	return code;
}

int perf_allowed_by(struct perf_kind *kind, enum perf_delivery delivery)
{
	struct perf_kind user_only = *kind;
	int code = try_open(kind, delivery);

	if (code != -EACCES || kind->exclude_kernel || kind->exclude_user)
		return code;
	user_only.exclude_kernel = true;
	code = try_open(&user_only, delivery);
	if (!code)
		kind->exclude_kernel = true;
	return code;
}

int perf_allowed(struct perf_kind *kind)
{
	return perf_allowed_by(kind, PERF_BY_SIGTRAP);
}

/* Touch one fresh page: one page fault, one overflow. */
static void fault(volatile char *page)
{
	*page = 1;
}

static const struct perf_sampling every_fault = {.kind = {.type = PERF_TYPE_SOFTWARE,
							  .config = PERF_COUNT_SW_PAGE_FAULTS,
							  .exclude_kernel = true},
						 .period = 1,
						 .first_period = 1};

/* A child that waits until it is let go, or its parent is gone. Returns its pid, 0 in the child. */
static pid_t fork_waiting(int *ret_go)
{
	int ends[2];
	pid_t child;
	char byte;

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	child = fork();
	if (child == 0) {
		close(ends[1]);
		while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
			;
	}
	close(ends[0]);
	if (child < 0)
		close(ends[1]);
	if (child > 0)
		*ret_go = ends[1];
	return child;
}

/*
 * The probing child needs no handler: with SIGTRAP blocked a fault must leave it pending (a
 * kernel that kills ends the child here), then, unblocked, a fault must kill. @reached says how
 * far it came.
 */
static _Noreturn void probe_child(volatile int *reached)
{
	static const struct rlimit no_core;
	static const struct timespec now;
	long page = sysconf(_SC_PAGESIZE);
	sigset_t trap;
	char *pages;
	int fd;

	setrlimit(RLIMIT_CORE, &no_core);
	signal(SIGTRAP, SIG_DFL);
	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	sigprocmask(SIG_BLOCK, &trap, NULL);
	pages = mmap(NULL, (size_t)(2 * page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		     -1, 0);
	if (pages == MAP_FAILED || perf_open_sampling(&every_fault, 0, &fd))
		_exit(0);
	madvise(pages, (size_t)(2 * page), MADV_NOHUGEPAGE);
	*reached = PROBE_OPENED;
	perf_enable(fd);
	fault(pages);
	if (sigtimedwait(&trap, NULL, &now) != SIGTRAP)
		_exit(0);
	*reached = PROBE_PENDED;
	sigprocmask(SIG_UNBLOCK, &trap, NULL);
	fault(pages + page);
	_exit(0);
}

static bool may_open_for(pid_t child)
{
	int fd, code = perf_open_sampling(&every_fault, child, &fd);

	if (!code)
		close(fd);
	return code != -EACCES && code != -EPERM;
}

enum perf_sigtrap perf_probe_sigtrap(void)
{
	enum perf_sigtrap result = PERF_SIGTRAP_NONE;
	volatile int *reached;
	bool others = true;
	int status = 0, go;
	pid_t child;

	reached = mmap(NULL, sizeof(*reached), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (reached == MAP_FAILED)
		return result;
	child = fork_waiting(&go);
	if (child == 0)
		probe_child(reached);
	if (child > 0) {
		others = may_open_for(child);
		close(go);
	}
	if (child > 0 && waitpid(child, &status, 0) == child) {
		bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGTRAP;

		if (*reached == PROBE_PENDED && killed)
			result = others ? PERF_SIGTRAP_WORKS : PERF_SIGTRAP_OWN_ALONE;
		else if (*reached == PROBE_OPENED && killed)
			result = PERF_SIGTRAP_KILLS_BLOCKED;
		else if (*reached != PROBE_STARTED)
			result = PERF_SIGTRAP_SILENT;
	}
	munmap((void *)reached, sizeof(*reached));
	return result;
}

int perf_probe_duplicate(void)
{
	pid_t parent = getpid(), child;
	int status = 0, go;

	child = fork_waiting(&go);
	if (child == 0) {
		long fd = syscall(SYS_pidfd_open, parent, 0);

		if (fd >= 0)
			fd = syscall(SYS_pidfd_getfd, fd, STDERR_FILENO, 0);
		/* A descriptor that is not there was looked for. */
		_exit(fd < 0 && errno != EBADF ? errno : 0);
	}
	if (child < 0)
		return -errno;
	(void)prctl(PR_SET_PTRACER, (unsigned long)child, 0, 0, 0);
	close(go);
	if (waitpid(child, &status, 0) != child)
		return -errno;
	(void)prctl(PR_SET_PTRACER, 0, 0, 0, 0);
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

static void on_call(int signo)
{
	(void)signo; /* that it runs is enough: a call may be broken off by it */
}

static _Noreturn void probe_calls_child(uint64_t sleep_tracepoint)
{
	const struct perf_sampling entry = {
		.kind = {.type = PERF_TYPE_TRACEPOINT, .config = sleep_tracepoint},
		.period = 1,
		.first_period = 1};
	const struct sigaction action = {.sa_handler = on_call, .sa_flags = SA_RESTART};
	const struct timespec nap = {.tv_nsec = 2000000};
	uint64_t count = 0;
	sigset_t trap;
	int fd, code;

	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	sigaction(SIGTRAP, &action, NULL);
	sigprocmask(SIG_UNBLOCK, &trap, NULL);
	code = perf_open_sampling(&entry, 0, &fd);
	if (!code)
		code = perf_enable(fd);
	if (!code)
		code = -clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
	if (!code)
		code = perf_count(fd, &count);
	if (!code && !count)
		code = -EIO;
	_exit(-code);
}

int perf_probe_calls(uint64_t sleep_tracepoint)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0)
		probe_calls_child(sleep_tracepoint);
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

int perf_probe_cpu_timer(void)
{
	struct sigevent quiet = {.sigev_notify = SIGEV_NONE};
	timer_t timer;

	if (timer_create(CLOCK_THREAD_CPUTIME_ID, &quiet, &timer) < 0)
		return -errno;
	timer_delete(timer);
	return 0;
}

uint32_t perf_tick_ns(void)
{
	struct timespec tick;

	/* The coarse clocks advance by the tick: their resolution is the kernel's TICK_NSEC. */
	if (clock_getres(CLOCK_REALTIME_COARSE, &tick) < 0 || tick.tv_sec > 0 ||
	    tick.tv_nsec < TICK_NS_MIN)
		return TICK_NS_FALLBACK;
	return tick.tv_nsec > TICK_NS_MAX ? TICK_NS_MAX : (uint32_t)tick.tv_nsec;
}
