/* SPDX-License-Identifier: MIT */
/*
 * Signal 33 in the kernel: one owner, which hands it to the source that it comes from.
 *
 * It is glibc's SIGSETXID: no full mask blocks it, no sigwait() returns it, and glibc's own
 * sigaction() refuses it, so the kernel is asked directly. glibc installs its handler at the
 * first pthread_create(); signal_33_retake() takes the signal back then, once, and everything that
 * is not ours goes to glibc's handler. Between the two ours fall into glibc's handler, which
 * ignores them: a tick of a timer, an event that has to be armed again (perf_async.c).
 *
 *   SI_TIMER with our value      a CPU timer                 cpu_timer.c
 *   POLL_IN .. POLL_HUP          an event with F_SETSIG(33)  perf_async.c
 *   anything else                libc's
 *
 * A positive si_code comes from the kernel alone, and glibc's own signals are for no one to
 * F_SETSIG.
 */
#include "agent/sources/signal_33.h"

#include <errno.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "agent/guard/agent.h"

#define KERNEL_SIGSET_BYTES 8
#define SA_RESTORER_KERNEL  0x04000000ul

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
	long r = syscall(SYS_rt_sigaction, SIGNAL_33, action, old, KERNEL_SIGSET_BYTES);

	return r < 0 ? -errno : 0;
}

static bool is_timer(const siginfo_t *info)
{
	return info->si_code == SI_TIMER && info->si_value.sival_ptr == &agent.cpu_timer;
}

static bool is_event(const siginfo_t *info)
{
	return info->si_code >= POLL_IN && info->si_code <= POLL_HUP;
}

/* What the kernel would have done without us. */
static void pass_on(int signo, siginfo_t *info, void *context)
{
	const struct kernel_sigaction *next = &agent.signal_33.libc_action;
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

/* Ours, in a thread that has a slot: else it is ending. */
static void deliver(const siginfo_t *info, const ucontext_t *context, uint64_t now_ns)
{
	struct slot *slot = agent_slot;
	struct tick tick = {
		.time_ns = now_ns,
		.context = context,
		.faults_blocked = sigismember(&context->uc_sigmask, SIGSEGV) == 1 ||
				  sigismember(&context->uc_sigmask, SIGBUS) == 1,
	};

	if (slot == NULL)
		return;
	if (info->si_code == SI_TIMER)
		cpu_timer_expired(slot, info, &tick);
	else
		perf_async_overflowed(slot, info, &tick);
}

static void on_signal(int signo, siginfo_t *info, void *context)
{
	uint64_t now_ns = agent_now_ns();
	int saved_errno = errno;

	if (is_timer(info) || is_event(info))
		deliver(info, context, now_ns);
	else
		pass_on(signo, info, context);
	errno = saved_errno;
}

/*
 * Ours into the kernel, what was there into libc_action. Twice at once does no harm.
 *
 * The program's signals wait: a handler of its own that ran over ours and left by siglongjmp()
 * would leave a sample half taken, and an event that nobody arms again. But for the walk's loads,
 * which may fault, and a system call filter that has the program answer our calls.
 */
int signal_33_take(void)
{
	const struct kernel_sigaction ours = {
		.handler = on_signal,
		.flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK | RESTORER_FLAG,
		.restorer = RESTORER,
		.mask = ~(SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(SIGSYS)),
	};
	struct kernel_sigaction before = {0};
	int r = kernel_sigaction(NULL, &before);

	if (r < 0)
		return r;
	if (before.handler == on_signal)
		return 0;
	agent.signal_33.libc_action = before;
	r = kernel_sigaction(&ours, NULL);
	/* Some parents leave it ignored (GNU make): that is not libc's coming yet. */
	if (r == 0 && (uintptr_t)before.handler != (uintptr_t)SIG_DFL &&
	    (uintptr_t)before.handler != (uintptr_t)SIG_IGN)
		atomic_store_explicit(&agent.signal_33.taken_from_libc, 1, memory_order_release);
	return r;
}

void signal_33_retake(void)
{
	if (!atomic_load_explicit(&agent.signal_33.taken_from_libc, memory_order_acquire))
		signal_33_take();
}
