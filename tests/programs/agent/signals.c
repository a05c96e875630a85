/* SPDX-License-Identifier: MIT */
/*
 * The program's own use of SIGSEGV, SIGBUS and SIGTRAP, inside an interpreter (by ctypes), since
 * the agent takes the first two only there. signals_case() returns 0 where all is as without us.
 */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

__attribute__((visibility("default"))) int signals_case(const char *name);

static sigjmp_buf back;
static volatile sig_atomic_t got_signo, got_code, got_onstack;
static void *volatile got_address;
static char alternate[65536];

#define CHECK(condition)                                               \
	do {                                                           \
		if (!(condition)) {                                    \
			printf("line %d: %s\n", __LINE__, #condition); \
			return 1;                                      \
		}                                                      \
	} while (0)

static void note(int signo, siginfo_t *info, void *context)
{
	char here;

	(void)context;
	got_signo = signo;
	got_code = info->si_code;
	got_address = info->si_addr;
	got_onstack = &here >= alternate && &here < alternate + sizeof(alternate);
	errno = 77;
}

#define note_handler ((sighandler_t)(void *)note)

static void note_and_jump(int signo, siginfo_t *info, void *context)
{
	note(signo, info, context);
	siglongjmp(back, 1);
}

static void install(int signo, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};

	sigaction(signo, &action, NULL);
}

static void burn(long us)
{
	struct timespec start, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000000 + (now.tv_nsec - start.tv_nsec) / 1000 < us);
}

static int case_faults(void)
{
	char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *file;
	FILE *empty = tmpfile();

	install(SIGSEGV, note_and_jump, 0);
	install(SIGBUS, note_and_jump, 0);
	for (int i = 0; i < 1000; i++) {
		if (sigsetjmp(back, 1) == 0)
			*(volatile char *)(page + i) = 1;
		CHECK(got_signo == SIGSEGV && got_code == SEGV_ACCERR && got_address == page + i);
		burn(100);
	}
	file = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(empty), 0);
	if (sigsetjmp(back, 1) == 0)
		(void)*(volatile char *)file;
	CHECK(got_signo == SIGBUS && got_code == BUS_ADRERR && got_address == file);
	return 0;
}

static int case_flags(void)
{
	struct sigaction seen;

	install(SIGSEGV, note, SA_RESETHAND);
	errno = 5;
	raise(SIGSEGV);
	CHECK(got_signo == SIGSEGV && got_code == SI_TKILL);
	CHECK(errno == 77); /* what the program's handler did stands */
	sigaction(SIGSEGV, NULL, &seen);
	CHECK(seen.sa_handler == SIG_DFL);
	install(SIGBUS, note, SA_ONSTACK | SA_NODEFER);
	sigaction(SIGBUS, NULL, &seen);
	CHECK(seen.sa_sigaction == note);
	CHECK((seen.sa_flags & ~0x04000000) == (SA_SIGINFO | SA_ONSTACK | SA_NODEFER));
	CHECK(signal(SIGBUS, SIG_IGN) == note_handler);
	CHECK(signal(SIGBUS, SIG_DFL) == SIG_IGN);
	CHECK(signal(SIGTRAP, SIG_IGN) == SIG_DFL);
	raise(SIGTRAP);
	CHECK(signal(SIGTRAP, note_handler) == SIG_IGN);
	CHECK(sigset(SIGTRAP, SIG_IGN) == note_handler);
	CHECK(sysv_signal(SIGTRAP, SIG_DFL) == SIG_IGN);
	CHECK(signal(SIGKILL, SIG_DFL) == SIG_ERR && errno == EINVAL);
	return 0;
}

static __attribute__((noinline)) int recurse(int depth)
{
	volatile char room[4096];

	room[0] = (char)depth;
	return depth < 0 ? 0 : recurse(depth + 1) + room[0];
}

static int case_overflow(void)
{
	stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate)};

	sigaltstack(&stack, NULL);
	install(SIGSEGV, note_and_jump, SA_ONSTACK);
	if (sigsetjmp(back, 1) == 0)
		recurse(0);
	CHECK(got_signo == SIGSEGV && got_onstack);
	return 0;
}

static int case_trap(void)
{
	install(SIGTRAP, note, 0);
#if defined(__x86_64__)
	__asm__ volatile("int3");
	CHECK(got_signo == SIGTRAP && got_code == SI_KERNEL);
#endif
	got_signo = 0;
	raise(SIGTRAP);
	CHECK(got_signo == SIGTRAP && got_code == SI_TKILL);
	return 0;
}

/* The program's mask as it sees it, and a SIGTRAP that waits for its unblocking. */
static int case_masks(void)
{
	struct timespec no_time = {0}, second = {.tv_sec = 1};
	sigset_t full, old, seen;
	siginfo_t info;
	char *pages;

	sigfillset(&full);
	install(SIGTRAP, note, 0);
	CHECK(pthread_sigmask(SIG_SETMASK, &full, &old) == 0);
	CHECK(sigismember(&old, SIGTRAP) == 0);
	CHECK(sigprocmask(SIG_BLOCK, NULL, &seen) == 0 && sigismember(&seen, SIGTRAP) == 1);
	for (int i = 0; i < 20; i++) { /* page faults: events, where they are the trigger */
		pages = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0);
		for (int at = 0; at < 1 << 20; at += 4096)
			pages[at] = 1;
		munmap(pages, 1 << 20);
	}
	CHECK(sigtimedwait(&full, &info, &no_time) == -1 && errno == EAGAIN);
	got_signo = 0;
	raise(SIGTRAP);
	CHECK(got_signo == 0);
	CHECK(sigtimedwait(&full, &info, &second) == SIGTRAP);
	CHECK(info.si_code == SI_USER); /* libc makes that of SI_TKILL */
	raise(SIGTRAP);
	CHECK(got_signo == 0);
	CHECK(sigprocmask(SIG_SETMASK, &old, &seen) == 0 && sigismember(&seen, SIGTRAP) == 1);
	CHECK(got_signo == SIGTRAP && got_code == SI_TKILL);
	CHECK(sigprocmask(SIG_BLOCK, NULL, &seen) == 0 && sigismember(&seen, SIGTRAP) == 0);
	return 0;
}

static volatile uintptr_t got_place;

static void note_place_and_jump(int signo, siginfo_t *info, void *context)
{
	const ucontext_t *interrupted = context;

#if defined(__x86_64__)
	got_place = (uintptr_t)interrupted->uc_mcontext.gregs[REG_RIP];
#else
	got_place = interrupted->uc_mcontext.pc;
#endif
	note_and_jump(signo, info, context);
}

static __attribute__((noinline)) void touch(volatile char *at)
{
	*at = 1;
}

/* A fault while an event's SIGTRAP is queued, being blocked behind the agent's back. */
static int fault_behind_trap(char *fresh, char *forbidden)
{
	const uint64_t trap = 1ull << (SIGTRAP - 1);

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &trap, NULL, sizeof(trap));
	touch(fresh); /* the event, where it is page faults */
	got_place = 0;
	if (sigsetjmp(back, 1) == 0)
		touch(forbidden);
	CHECK(got_address == forbidden && got_code == SEGV_ACCERR);
	CHECK(got_place - (uintptr_t)touch < 64);
	syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &trap, NULL, sizeof(trap));
	return 0;
}

static int case_queued_trap(void)
{
	char *fresh =
		mmap(NULL, 100 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *forbidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	install(SIGSEGV, note_place_and_jump, 0);
	for (int i = 0; i < 100; i++)
		if (fault_behind_trap(fresh + i * 4096, forbidden + i) != 0)
			return 1;
	return 0;
}

/*
 * Walks that fault at once: the interpreter's present frame (CPython 3.11: cframe at 0x38 of the
 * thread state, current_frame at 8 of it) points nowhere, while nobody but the agent looks.
 */
static int case_bad_frames(void)
{
	static const uintptr_t nowhere[] = {0x18, 0x7123400000000000, 0x6000};
	char *(*thread_state)(void) =
		(char *(*)(void))dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
	void *volatile *frame = (void *volatile *)(*(char **)(thread_state() + 0x38) + 8);
	void *right = *frame;

	for (int i = 0; i < 3000; i++) {
		*frame = (void *)nowhere[i % 3];
		burn(100);
		free(calloc(64, 4096)); /* mapped and unmapped; touched by no one but the kernel */
		*frame = right;
	}
	return 0;
}

static int case_children(void)
{
	char *const argv[] = {"/bin/sh", "-c", "sed -n 's/SigIgn:.//p' /proc/self/status", NULL};
	pid_t pid;

	signal(SIGSEGV, SIG_IGN);
	signal(SIGTRAP, SIG_IGN);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		execv(argv[0], argv);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	pid = vfork();
	if (pid == 0) {
		execv(argv[0], argv);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	return execv(argv[0], argv);
}

int signals_case(const char *name)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} cases[] = {
		{"faults", case_faults},
		{"flags", case_flags},
		{"overflow", case_overflow},
		{"trap", case_trap},
		{"masks", case_masks},
		{"children", case_children},
		{"queued_trap", case_queued_trap},
		{"bad_frames", case_bad_frames},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (strcmp(cases[i].name, name) == 0)
			return cases[i].run();
	return 125;
}
