/* SPDX-License-Identifier: MIT */
/*
 * The trigger that works everywhere: a CPU-time timer per thread, delivered to it by signal 33.
 *
 * Signal 33 is glibc's SIGSETXID: no full mask blocks it, no sigwait() returns it, and glibc's own
 * sigaction() refuses it, so the kernel is asked directly. glibc installs its handler at the
 * first pthread_create(); thread_created() takes the signal back then, once, and everything that is
 * not a timer of ours goes to glibc's handler. Between the two a tick falls into glibc's
 * handler, which ignores it.
 *
 * A timer expires on the scheduler's tick, so its interval is never below the tick, and its first
 * expiry is 1 ns: the tick is the draw, and short threads get their share. A count is one interval;
 * what the kernel merged (overrun) is kept apart, being right as a total and wrong as a place.
 *
 * Timers do not survive fork (children) nor exec, but do survive their thread: thread_stop()
 * deletes. Where the recorder is gone each thread disarms its own timer at a tick.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "agent/guard/agent.h"
#include "agent/sources/source.h"

#define SIGNAL_CPU_TIMER      33
#define HEARTBEAT_STALE_TICKS 64 /* without a beat before its age is looked at */
#define KERNEL_SIGSET_BYTES   8
#define SA_RESTORER_KERNEL    0x04000000ul

#define SIGNAL_BIT(signo) (1ull << ((signo)-1))

#if defined(__x86_64__)
/*
 * x86-64 has the return from a handler in user space. Unwinders know a signal frame by exactly
 * these bytes (libgcc's config/i386/linux-unwind.h), with no unwind table at the byte before.
 */
__asm__(".pushsection .text\n"
	".balign 16\n"
	"nop\n"
	".type pathprof_signal_return, @function\n"
	"pathprof_signal_return:\n"
	"movq $15, %rax\n"
	"syscall\n"
	".size pathprof_signal_return, . - pathprof_signal_return\n"
	".popsection\n");
extern void pathprof_signal_return(void) __attribute__((visibility("hidden")));
#define RESTORER      pathprof_signal_return
#define RESTORER_FLAG SA_RESTORER_KERNEL
#else
#define RESTORER      NULL /* the vDSO's */
#define RESTORER_FLAG 0ul
#endif

static int kernel_sigaction(const struct kernel_sigaction *action, struct kernel_sigaction *old)
{
	long r = syscall(SYS_rt_sigaction, SIGNAL_CPU_TIMER, action, old, KERNEL_SIGSET_BYTES);

	return r < 0 ? -errno : 0;
}

static bool is_ours(const siginfo_t *info)
{
	return info->si_code == SI_TIMER && info->si_value.sival_ptr == &agent.cpu_timer;
}

/* What the kernel would have done without us. */
static void pass_on(int signo, siginfo_t *info, void *context)
{
	const struct kernel_sigaction *next = &agent.cpu_timer.libc_action;
	const struct kernel_sigaction none = {0};

	if ((uintptr_t)next->handler == (uintptr_t)SIG_IGN)
		return;
	if ((uintptr_t)next->handler != (uintptr_t)SIG_DFL) {
		next->handler(signo, info, context);
		return;
	}
	kernel_sigaction(&none, NULL);
	syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), signo, info);
}

static void disarm(const struct slot *slot)
{
	const struct itimerspec never = {0};

	syscall(SYS_timer_settime, slot->timer, 0, &never, NULL);
}

/* Nobody will read what we write: then the timer has no purpose. */
static bool recorder_gone(struct slot *slot, const struct memory_header *header, uint64_t now_ns)
{
	uint64_t beat_ns = atomic_load_explicit(&header->heartbeat_ns, memory_order_relaxed);

	if (beat_ns != slot->heartbeat_seen) {
		slot->heartbeat_seen = beat_ns;
		slot->heartbeat_ticks = 0;
	}
	if (++slot->heartbeat_ticks < HEARTBEAT_STALE_TICKS)
		return false;
	slot->heartbeat_ticks = 0;
	/* One that is stopped comes back; of a dead one we are no longer the child. */
	return agent_recorder_gone(now_ns) && (uint32_t)getppid() != agent.parent;
}

static void on_tick(siginfo_t *info, ucontext_t *context, uint64_t now_ns)
{
	struct slot *slot = agent_slot;
	const struct memory_header *header = agent.capture.memory.header;
	struct tick tick = {
		.time_ns = now_ns,
		.context = context,
		.event = agent.cpu_timer.event,
		.overrun = info->si_overrun > 0 ? (uint32_t)info->si_overrun : 0,
		.count = agent.cpu_timer.interval_ns,
	};

	if (slot == NULL)
		return; /* the thread is ending */
	if (recorder_gone(slot, header, now_ns)) {
		disarm(slot);
		return;
	}
	tick.faults_blocked = sigismember(&context->uc_sigmask, SIGSEGV) == 1 ||
			      sigismember(&context->uc_sigmask, SIGBUS) == 1;
	capture_tick(&agent.capture, slot, &tick);
}

static void on_signal(int signo, siginfo_t *info, void *context)
{
	uint64_t now_ns = agent_now_ns();
	int saved_errno = errno;

	if (is_ours(info))
		on_tick(info, context, now_ns);
	else
		pass_on(signo, info, context);
	errno = saved_errno;
}

/* Ours into the kernel, what was there into libc_action. Twice at once does no harm. */
static int take_signal(void)
{
	const struct kernel_sigaction ours = {
		.handler = on_signal,
		.flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK | RESTORER_FLAG,
		.restorer = RESTORER,
		/* Never SIGSEGV or SIGBUS: the walk's loads may fault. */
		.mask = SIGNAL_BIT(SIGNAL_CPU_TIMER) | SIGNAL_BIT(SIGTRAP),
	};
	struct kernel_sigaction before = {0};
	int r = kernel_sigaction(NULL, &before);

	if (r < 0)
		return r;
	if (before.handler == on_signal)
		return 0;
	agent.cpu_timer.libc_action = before;
	r = kernel_sigaction(&ours, NULL);
	/* Some parents leave it ignored (GNU make): that is not libc's coming yet. */
	if (r == 0 && (uintptr_t)before.handler != (uintptr_t)SIG_DFL &&
	    (uintptr_t)before.handler != (uintptr_t)SIG_IGN)
		atomic_store_explicit(&agent.cpu_timer.taken_from_libc, 1, memory_order_release);
	return r;
}

static int process_start(struct capture *capture)
{
	const struct memory_header *header = capture->memory.header;
	struct agent_cpu_timer *state = &agent.cpu_timer;

	for (uint32_t i = 0; i < header->nr_events && i < EVENTS_MAX; i++) {
		if (header->events[i].trigger != TRIGGER_CPU_TIMER)
			continue;
		state->event = i;
		state->interval_ns = header->events[i].period;
		if (state->interval_ns < header->tick_ns)
			state->interval_ns = header->tick_ns;
		return state->interval_ns != 0 ? take_signal() : -EINVAL;
	}
	return -ENOENT;
}

static void thread_created(void)
{
	if (!atomic_load_explicit(&agent.cpu_timer.taken_from_libc, memory_order_acquire))
		take_signal();
}

static int thread_start(struct capture *capture, struct slot *slot)
{
	struct sigevent event = {0};
	struct itimerspec when = {0};
	int timer;

	(void)capture;
	thread_created(); /* the creator may not have come to it yet */
	slot->timer = -1;
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = SIGNAL_CPU_TIMER;
	event.sigev_value.sival_ptr = &agent.cpu_timer;
	event._sigev_un._tid = (pid_t)slot->tid;
	if (syscall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &timer) < 0)
		return -errno; /* EAGAIN: the user's limit of pending signals */
	slot->timer = timer;

	when.it_value.tv_nsec = 1;
	when.it_interval.tv_sec = (time_t)(agent.cpu_timer.interval_ns / 1000000000u);
	when.it_interval.tv_nsec = (long)(agent.cpu_timer.interval_ns % 1000000000u);
	return syscall(SYS_timer_settime, timer, 0, &when, NULL) < 0 ? -errno : 0;
}

static void thread_stop(struct capture *capture, struct slot *slot)
{
	(void)capture;
	if (slot->timer >= 0)
		syscall(SYS_timer_delete, slot->timer);
	slot->timer = -1;
}

const struct source source_cpu_timer = {
	.name = "cpu-timer",
	.trigger = TRIGGER_CPU_TIMER,
	.process_start = process_start,
	.thread_created = thread_created,
	.thread_start = thread_start,
	.thread_stop = thread_stop,
};
