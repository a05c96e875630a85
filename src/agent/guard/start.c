/* SPDX-License-Identifier: MIT */
/*
 * The start: when libc is ready and before main().
 *
 *   ld.so    our constructor first (environment.c), then the other constructors: their
 *            wrappers' calls pass straight through, and threads that they make stay unsampled
 *   _start   __libc_start_main, this wrapper:
 *              find the interpreter, meet the recorder, map the memory,
 *              take the signals, claim and arm the main thread
 *            then libc's own, and main()
 *
 * Everything is ready before the first tick. What fails leaves the agent inert and the program as
 * it would be without it. A program that starts without __libc_start_main is not recorded.
 */
#include "agent/guard/agent.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "agent/guard/handshake.h"

static bool recover_load(const siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;
	uintptr_t recovery;

	if (info->si_code <= 0)
		return false; /* sent by a process, no fault */
#if defined(__x86_64__)
	recovery = load_recover((uintptr_t)interrupted->uc_mcontext.gregs[REG_RIP]);
	if (recovery != 0)
		interrupted->uc_mcontext.gregs[REG_RIP] = (greg_t)recovery;
#else
	recovery = load_recover((uintptr_t)interrupted->uc_mcontext.pc);
	if (recovery != 0)
		interrupted->uc_mcontext.pc = recovery;
#endif
	return recovery != 0;
}

static void find_interpreter(struct capture *capture, struct handshake_hello *hello)
{
	struct errbuf err = {{0}};
	int r = cpython_find(&capture->cpython, &err);
	ssize_t n;

	if (r == -ENOENT)
		cpython_late_begin(&capture->late);
	hello->interpreter = INTERPRETER_NONE;
	if (r == 0)
		hello->interpreter = INTERPRETER_READ;
	else if (r != -ENOENT)
		hello->interpreter = INTERPRETER_UNREADABLE;
	hello->interpreter_version = capture->cpython.version;
	capture->no_interpreter = hello->interpreter == INTERPRETER_UNREADABLE;
	memcpy(hello->reason, err.text, sizeof(hello->reason) - 1);
	n = readlink("/proc/self/exe", hello->path, sizeof(hello->path) - 1);
	hello->path[n > 0 ? n : 0] = '\0';
}

static void add_source(const struct source *source)
{
	for (uint32_t i = 0; i < agent.nr_sources; i++)
		if (agent.sources[i] == source)
			return;
	if (source->process_start(&agent.capture) == 0)
		agent.sources[agent.nr_sources++] = source;
}

static void start_sources(void)
{
	const struct memory_header *header = agent.capture.memory.header;

	for (uint32_t i = 0; i < header->nr_events && i < EVENTS_MAX; i++) {
		if (header->events[i].trigger == TRIGGER_CPU_TIMER)
			add_source(&source_cpu_timer);
		else if (header->events[i].trigger == TRIGGER_PERF_SIGTRAP)
			add_source(&source_perf_sigtrap);
		else if (header->events[i].trigger == TRIGGER_PERF_ASYNC)
			add_source(&source_perf_async);
	}
}

static void watch_for_forks(void)
{
	long page = sysconf(_SC_PAGESIZE);
	uint8_t *mark = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mark != MAP_FAILED && madvise(mark, (size_t)page, MADV_WIPEONFORK) == 0) {
		*mark = 1;
		agent.same_process = mark;
	}
	fork_watch();
}

static void start_main_thread(void)
{
	struct slot *slot = slot_claim(&agent.capture.memory);

	if (slot != NULL)
		thread_begin(slot, (uint32_t)syscall(SYS_gettid));
	else
		atomic_fetch_add_explicit(&agent.capture.memory.header->lost[LOSS_NO_SLOT], 1,
					  memory_order_relaxed);
}

static int map_memory(int fd)
{
	int r = memory_map(fd, &agent.capture.memory, NULL);

	close(fd);
	if (r == 0)
		memory_prefault(&agent.capture.memory, AGENT_PREFAULT_PAGES);
	return r;
}

static void agent_start(void)
{
	struct handshake_hello hello = {.magic = HANDSHAKE_MAGIC, .version = HANDSHAKE_VERSION};
	int fd;

	if (agent.environment.recording[0] == '\0')
		return;
	agent.pid = (uint32_t)getpid();
	agent.parent = (uint32_t)getppid();
	hello.pid = agent.pid;
	find_interpreter(&agent.capture, &hello);
	if (meet_recorder(agent.environment.recording, &hello, &fd) < 0 || map_memory(fd) < 0)
		return;

	watch_for_forks();
	if (hello.interpreter == INTERPRETER_READ) {
		dispositions_take(SIGSEGV, recover_load);
		dispositions_take(SIGBUS, recover_load);
	}
	start_sources();
	atomic_store_explicit(&agent.mode, AGENT_RECORDING, memory_order_release);
	start_main_thread();
}

WRAPPER int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
			      void (*init)(void), void (*fini)(void), void (*rtld_fini)(void),
			      void *stack_end)
{
	const struct libc *next = libc_next();
	int saved_errno = errno;

	agent_start();
	errno = saved_errno;
	return next->__libc_start_main(main, argc, argv, init, fini, rtld_fini, stack_end);
}

/* Last of all destructors (-z initfirst): the exact CPU time of the thread that called exit(). */
__attribute__((destructor)) static void agent_exit(void)
{
	struct slot *slot = agent_slot;

	if (slot != NULL && agent_is_recorded_process())
		thread_account(slot);
}
