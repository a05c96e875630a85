/* SPDX-License-Identifier: MIT */
/*
 * Threads: armed before their start routine, disarmed in whatever way they end.
 *
 *   pthread_create wrapper     claim a slot, note the routine in it, make the thread
 *     trampoline (new thread)  slot into thread-local storage, arm, run the routine
 *       clean-up handler       on return, pthread_exit and cancellation alike: disarm, note the
 *                              exact CPU time, end the slot
 *
 * Nothing is allocated: the slot carries the routine and its argument. The trampoline uses
 * setjmp-style clean-up (this file is compiled without -fexceptions), which needs no unwinder
 * library; an exception that leaves the start routine finds no handler, as without us.
 *
 * System calls that a sampled thread costs: 7 with the CPU timer (timer_create, timer_settime;
 * timer_delete, clock_gettime, getrusage, prctl, and the doorbell's futex in slot_end()), 6 with
 * perf events (the doorbell and a wait; the last four), the last four alone with inherited ones; by
 * signal ten more for each event (a duplicate, looked at, moved and armed; looked at, disabled and
 * closed). Tests count them.
 *
 * Raw clone() threads and libc's own helpers never tick: timers and events are per thread.
 * Destructors of thread-specific data run after the clean-up, unsampled.
 */
#include "agent/guard/agent.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#define NS_PER_S 1000000000ull

void thread_begin(struct slot *slot, uint32_t tid)
{
	struct capture *capture = &agent.capture;

	slot_activate(&capture->memory, slot, agent.pid, tid, agent_now_ns());
	agent_slot = slot;
	if (dispositions_owned(SIGTRAP))
		masks_begin(slot);
	for (uint32_t i = 0; i < agent.nr_sources; i++)
		if (agent.sources[i]->thread_start(capture, slot) < 0)
			slot_lose(slot, LOSS_LATE_ARMING, 1);
}

void thread_account(struct slot *slot)
{
	struct timespec cpu;
	struct rusage usage;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu) == 0)
		slot->cpu_ns = (uint64_t)cpu.tv_sec * NS_PER_S + (uint64_t)cpu.tv_nsec;
	if (getrusage(RUSAGE_THREAD, &usage) == 0)
		slot->voluntary_switches = (uint64_t)usage.ru_nvcsw;
	prctl(PR_GET_NAME, slot->name);
}

static void thread_end(void *unused)
{
	struct capture *capture = &agent.capture;
	struct slot *slot = agent_slot;

	(void)unused;
	if (slot == NULL)
		return; /* a fork child: the slot is its parent's */
	for (uint32_t i = 0; i < agent.nr_sources; i++)
		agent.sources[i]->thread_stop(capture, slot);
	/* A tick that comes from here on finds no slot: perf events count on until the kernel has
	 * the thread exit, and what is done here is not the program's. The compiler keeps this
	 * order. */
	agent_slot = NULL;
	atomic_signal_fence(memory_order_seq_cst);
	thread_account(slot);
	slot_end(&capture->memory, slot, agent_now_ns());
}

/*
 * The calling thread's id from its CPU clock's id: the kernel keeps ~tid in the bits above the
 * lowest three (include/linux/posix-timers_types.h), and glibc makes the id from the thread's
 * block without a system call.
 */
static uint32_t own_tid(void)
{
	clockid_t clock;

	if (pthread_getcpuclockid(pthread_self(), &clock) != 0)
		return (uint32_t)gettid();
	return (uint32_t) ~(clock >> 3);
}

/* What a start routine returns, of pthread_create() or of thrd_create(). */
union thread_result {
	void *posix;
	int c11;
};

/* The thread's life inside ours: armed before the routine, disarmed in whatever way it ends. */
static union thread_result run_routine(struct slot *slot, bool c11)
{
	uintptr_t routine = (uintptr_t)slot->start_routine;
	void *argument = (void *)(uintptr_t)slot->start_argument;
	union thread_result result;
	int cancel_state;

	thread_begin(slot, own_tid());
	pthread_cleanup_push(thread_end, NULL);
	if (c11)
		result.c11 = ((int (*)(void *))routine)(argument);
	else
		result.posix = ((void *(*)(void *))routine)(argument);
	/* The clean-up of a thread that has returned must not be cut short. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_cleanup_pop(1);
	pthread_setcancelstate(cancel_state, NULL);
	return result;
}

static void *trampoline(void *slot)
{
	return run_routine(slot, false).posix;
}

static int trampoline_c11(void *slot)
{
	return run_routine(slot, true).c11;
}

/* A slot for a thread that is about to be made; NULL: it runs unsampled. */
static struct slot *claim(const pthread_attr_t *attributes, uintptr_t routine, void *argument)
{
	struct memory_header *header = agent.capture.memory.header;
	struct slot *slot;

	if (agent_mode() != AGENT_RECORDING ||
	    (agent.same_process != NULL && *agent.same_process == 0) ||
	    atomic_load_explicit(&header->closed, memory_order_relaxed))
		return NULL;
	slot = slot_claim(&agent.capture.memory);
	if (slot == NULL) {
		/* Its ticks cannot be counted, having no timer: the thread counts once. */
		atomic_fetch_add_explicit(&header->lost[LOSS_NO_SLOT], 1, memory_order_relaxed);
		return NULL;
	}
	slot->start_routine = routine;
	slot->start_argument = (uintptr_t)argument;
	slot->program_blocks = masks_of_new_thread(attributes);
	return slot;
}

static void created(struct slot *slot, bool success)
{
	if (!success)
		slot_unclaim(&agent.capture.memory, slot);
	else
		for (uint32_t i = 0; i < agent.nr_sources; i++)
			agent.sources[i]->thread_created();
}

WRAPPER int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			   void *(*routine)(void *), void *argument)
{
	const struct libc *next = libc_next();
	struct slot *slot = claim(attributes, (uintptr_t)routine, argument);
	int r;

	if (slot == NULL) {
		r = next->pthread_create(thread, attributes, routine, argument);
		for (uint32_t i = 0; agent_mode() == AGENT_RECORDING && i < agent.nr_sources; i++)
			agent.sources[i]->thread_created();
		return r;
	}
	r = next->pthread_create(thread, attributes, trampoline, slot);
	created(slot, r == 0);
	return r;
}

WRAPPER int thrd_create(thrd_t *thread, thrd_start_t routine, void *argument)
{
	const struct libc *next = libc_next();
	struct slot *slot = claim(NULL, (uintptr_t)routine, argument);
	int r;

	if (slot == NULL)
		return next->thrd_create(thread, routine, argument);
	r = next->thrd_create(thread, trampoline_c11, slot);
	created(slot, r == thrd_success);
	return r;
}
