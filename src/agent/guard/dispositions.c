/* SPDX-License-Identifier: MIT */
/*
 * SIGSEGV, SIGBUS, SIGTRAP and, with events by signal, SIGIO: ours in the kernel, the program's own
 * in its eyes.
 *
 *   program's view    dispositions[signo]          what its sigaction() and signal() set and read
 *   kernel's view     dispatch(), with the program's own mask and flags, so that nesting, the
 *                     alternate stack and restarting are as it asked (SA_RESETHAND is emulated)
 *
 *   dispatch: ours (a guarded load that faulted, an event's SIGTRAP)? done.
 *             handler   called as the kernel would
 *             SIG_DFL   the default goes into the kernel and the signal is queued again with the
 *                       same siginfo: it kills, and dumps core, at the return
 *             SIG_IGN   dropped, but for a fault, which kills
 *
 * The program's action is two copies and a generation: a handler on another thread never waits
 * for a writer. Writers (sigaction, and SA_RESETHAND) exclude each other by a spin lock that is
 * held with all signals blocked, for a few instructions and one system call.
 *
 * In a vfork child sigaction() goes to the kernel alone: it has its own actions, but our memory.
 * There and in raw clone() children the kernel may still say dispatch(): reads translate it.
 */
#include "agent/guard/agent.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "agent/sources/interrupted_call.h"
#include "agent/sources/signal_33.h"

struct disposition {
	bool (*ours)(const siginfo_t *info, void *context);
	struct sigaction copies[2];
	_Atomic uint32_t generation; /* copies[generation % 2] is valid */
	_Atomic uint32_t owned;
	_Atomic uint32_t writing;    /* the lock */
	_Atomic uint32_t ends_calls; /* siginterrupt(): signal() sets no SA_RESTART */
};

#define NR_DISPOSITIONS 4

static struct disposition dispositions[NR_DISPOSITIONS];
static const int disposition_signals[NR_DISPOSITIONS] = {SIGSEGV, SIGBUS, SIGTRAP, SIGIO};

/* Handlers that the program asked to run with SIGTRAP and MASKS_CARRIER blocked; bit signo. */
static _Atomic uint64_t handlers_blocking_trap, handlers_blocking_carrier;

static struct disposition *find(int signo)
{
	for (int i = 0; i < NR_DISPOSITIONS; i++)
		if (disposition_signals[i] == signo)
			return &dispositions[i];
	return NULL;
}

static bool owned(const struct disposition *disposition)
{
	return disposition != NULL &&
	       atomic_load_explicit(&disposition->owned, memory_order_acquire);
}

bool dispositions_owned(int signo)
{
	return owned(find(signo));
}

static void read_program(const struct disposition *disposition, struct sigaction *ret_action)
{
	uint32_t generation;

	do {
		generation = atomic_load_explicit(&disposition->generation, memory_order_acquire);
		*ret_action = disposition->copies[generation % 2];
		atomic_thread_fence(memory_order_acquire);
	} while (generation !=
		 atomic_load_explicit(&disposition->generation, memory_order_relaxed));
}

/* With the lock held. */
static void write_program(struct disposition *disposition, const struct sigaction *action)
{
	uint32_t next = atomic_load_explicit(&disposition->generation, memory_order_relaxed) + 1;

	disposition->copies[next % 2] = *action;
	atomic_store_explicit(&disposition->generation, next, memory_order_release);
}

static void lock(struct disposition *disposition, uint64_t *ret_mask)
{
	const uint64_t all = ~0ull;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, ret_mask, sizeof(all));
	while (atomic_exchange_explicit(&disposition->writing, 1, memory_order_acquire))
		sched_yield();
}

static void unlock(struct disposition *disposition, const uint64_t *mask)
{
	atomic_store_explicit(&disposition->writing, 0, memory_order_release);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, mask, NULL, sizeof(*mask));
}

/* Kill with the default action, and with the siginfo that the program would have died of. */
static void take_default(int signo, siginfo_t *info)
{
	const struct sigaction action = {.sa_handler = SIG_DFL};

	libc_next()->sigaction(signo, &action, NULL);
	/* A fault would come again at the return; a trap or a sent signal would not. */
	syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), signo, info);
}

static void reset_program(struct disposition *disposition)
{
	struct sigaction action;
	uint64_t mask;

	lock(disposition, &mask);
	read_program(disposition, &action);
	action.sa_handler = SIG_DFL; /* flags stay, as the kernel does it */
	write_program(disposition, &action);
	unlock(disposition, &mask);
}

/* The mask that the program's own SIGTRAP handler would run under, as we keep it. */
static void take_mask(const struct sigaction *action, const void *context)
{
	const ucontext_t *interrupted = context;
	sigset_t mask, added = action->sa_mask;

	if (!(action->sa_flags & (int)SA_NODEFER))
		sigaddset(&added, SIGTRAP);
	masks_as_kernel(&added);
	sigorset(&mask, &interrupted->uc_sigmask, &added);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(uint64_t));
}

#define FIRST_PUSH_BYTES 512 /* how far below the stack pointer a first instruction may write */

/*
 * A fault while an event's SIGTRAP is queued, be it blocked: the kernel takes the first of its
 * synchronous signals without a look at the mask (dequeue_synchronous_signal()), so the trap's
 * frame is made at the faulting instruction and this one on top, before the trap's handler has
 * begun; the trap's mask leaves the faults open. Let that one run: then the instruction faults
 * again, and alone. But where the handler's own first instruction meets the end of the stack, it
 * would for ever.
 */
static bool is_before_trap(int signo, const siginfo_t *info, const void *context,
			   const void *handler)
{
	const ucontext_t *interrupted = context;
#if defined(__x86_64__)
	uintptr_t pc = (uintptr_t)interrupted->uc_mcontext.gregs[REG_RIP];
	uintptr_t sp = (uintptr_t)interrupted->uc_mcontext.gregs[REG_RSP];
#else
	uintptr_t pc = interrupted->uc_mcontext.pc, sp = interrupted->uc_mcontext.sp;
#endif

	return (signo == SIGSEGV || signo == SIGBUS) && info->si_code > 0 &&
	       pc == (uintptr_t)handler && sp - (uintptr_t)info->si_addr > FIRST_PUSH_BYTES;
}

static void dispatch(int signo, siginfo_t *info, void *context)
{
	struct disposition *disposition = find(signo);
	const ucontext_t *interrupted = context;
	int saved_errno = errno;
	struct sigaction action;
	bool sent = info->si_code <= 0 || (signo == SIGTRAP && info->si_code == TRAP_PERF) ||
		    signo == SIGIO;

	if (is_before_trap(signo, info, context, (const void *)dispatch))
		return;
	if (disposition->ours(info, context)) {
		/* It waited behind a held one until a call opened the mask for its time. */
		if (signo == SIGTRAP && sigismember(&interrupted->uc_sigmask, SIGTRAP) == 1)
			interrupted_call_resume(signo, context);
		goto out;
	}
	if (signo == SIGTRAP)
		masks_read_mark(info);
	if (signo == SIGTRAP && masks_hold_trap(info, context)) {
		interrupted_call_resume(signo, context);
		goto out;
	}
	read_program(disposition, &action);
	if (action.sa_handler == SIG_IGN && sent) {
		interrupted_call_resume(signo, context);
		goto out;
	}
	if (action.sa_handler == SIG_IGN || action.sa_handler == SIG_DFL) {
		take_default(signo, info);
		goto out;
	}
	if (action.sa_flags & (int)SA_RESETHAND)
		reset_program(disposition);
	if (signo == SIGTRAP)
		take_mask(&action, context);
	errno = saved_errno;
	action.sa_sigaction(signo, info, context);
	return;
out:
	errno = saved_errno;
}

/*
 * What the kernel is told for what the program wants. All signals wait while an event's SIGTRAP is
 * handled, or one that the program ignores, so that interrupted_call.h sees which are pending; but
 * for faults, which the walk survives.
 */
static struct sigaction kernel_action(int signo, const struct sigaction *program)
{
	struct sigaction action = {.sa_flags = SA_RESTART | SA_ONSTACK};

	if (program->sa_handler != SIG_DFL && program->sa_handler != SIG_IGN)
		action = *program;
	action.sa_flags = (int)((unsigned int)action.sa_flags & ~SA_RESETHAND) | SA_SIGINFO;
	action.sa_sigaction = dispatch;
	if (signo == SIGTRAP || program->sa_handler == SIG_IGN) {
		sigfillset(&action.sa_mask);
		/* Which leaves libc's out: a tick by it would find this one's capture under way. */
		action.sa_mask.__val[0] |= 1ul << (SIGNAL_33 - 1);
		sigdelset(&action.sa_mask, SIGSEGV);
		sigdelset(&action.sa_mask, SIGBUS);
	} else if (dispositions_owned(SIGTRAP)) {
		masks_as_kernel(&action.sa_mask);
	}
	return action;
}

int dispositions_take(int signo, bool (*ours)(const siginfo_t *info, void *context))
{
	struct disposition *disposition = find(signo);
	struct sigaction program, action;

	if (libc_next()->sigaction(signo, NULL, &program) < 0)
		return -errno;
	disposition->ours = ours;
	write_program(disposition, &program);
	action = kernel_action(signo, &program);
	if (libc_next()->sigaction(signo, &action, NULL) < 0)
		return -errno;
	atomic_store_explicit(&disposition->owned, 1, memory_order_release);
	return 0;
}

static void put_ignored(bool exec_failed, bool trap_too)
{
	const struct sigaction ignored = {.sa_handler = SIG_IGN};
	struct sigaction program, action;

	for (int i = 0; i < NR_DISPOSITIONS; i++) {
		int signo = disposition_signals[i];

		if (!owned(&dispositions[i]))
			continue;
		read_program(&dispositions[i], &program);
		if (program.sa_handler != SIG_IGN && !(trap_too && signo == SIGTRAP))
			continue;
		action = exec_failed ? kernel_action(signo, &program) : ignored;
		libc_next()->sigaction(signo, &action, NULL);
	}
}

bool dispositions_ignored(int signo)
{
	struct sigaction program;

	read_program(find(signo), &program);
	return program.sa_handler == SIG_IGN;
}

bool dispositions_has_handler(int signo)
{
	struct sigaction program;

	read_program(find(signo), &program);
	return program.sa_handler != SIG_DFL && program.sa_handler != SIG_IGN;
}

void dispositions_before_exec(bool trap_too)
{
	put_ignored(false, trap_too);
}

void dispositions_exec_failed(bool trap_too)
{
	put_ignored(true, trap_too);
}

/* The masks of the program's handlers, as it asked for them. */
static void give_back_masks(void)
{
	uint64_t blocking_carrier = atomic_load(&handlers_blocking_carrier);
	uint64_t blocking = atomic_load(&handlers_blocking_trap) | blocking_carrier;
	struct sigaction action;

	for (int signo = 1; signo < 64 && blocking >> signo; signo++) {
		if (!(blocking >> signo & 1) || libc_next()->sigaction(signo, NULL, &action) != 0)
			continue;
		masks_as_program(&action.sa_mask, blocking_carrier >> signo & 1);
		libc_next()->sigaction(signo, &action, NULL);
	}
}

void dispositions_give_back(void)
{
	struct sigaction program;

	if (dispositions_owned(SIGTRAP))
		give_back_masks();
	for (int i = 0; i < NR_DISPOSITIONS; i++) {
		if (!owned(&dispositions[i]))
			continue;
		read_program(&dispositions[i], &program);
		libc_next()->sigaction(disposition_signals[i], &program, NULL);
		atomic_store_explicit(&dispositions[i].owned, 0, memory_order_release);
	}
}

/* ---- what the program calls ---- */

static int own_sigaction(int signo, const struct sigaction *action, struct sigaction *old)
{
	struct disposition *disposition = find(signo);
	struct sigaction wanted, before, told;
	uint64_t mask;
	int r = 0;

	if (action != NULL)
		wanted = *action; /* may be the same object as @old */
	if (action == NULL) {
		read_program(disposition, &before);
	} else {
		told = kernel_action(signo, &wanted);
		lock(disposition, &mask);
		read_program(disposition, &before);
		write_program(disposition, &wanted);
		r = libc_next()->sigaction(signo, &told, NULL);
		unlock(disposition, &mask);
	}
	if (r == 0 && old != NULL)
		*old = before;
	return r;
}

static void note_mask(_Atomic uint64_t *handlers, uint64_t bit, bool blocking)
{
	if (blocking)
		atomic_fetch_or_explicit(handlers, bit, memory_order_relaxed);
	else
		atomic_fetch_and_explicit(handlers, ~bit, memory_order_relaxed);
}

static void note_masks(uint64_t bit, const sigset_t *mask)
{
	note_mask(&handlers_blocking_trap, bit, sigismember(mask, SIGTRAP) == 1);
	note_mask(&handlers_blocking_carrier, bit, sigismember(mask, MASKS_CARRIER) == 1);
}

/* A signal that we do not own, or another process's: @old never shows dispatch(). */
static int other_sigaction(int signo, const struct sigaction *action, struct sigaction *old)
{
	bool keeps_mask = dispositions_owned(SIGTRAP) && signo > 0 && signo < 64;
	uint64_t bit = 1ull << (signo & 63), blocking = 0;
	struct sigaction told;
	int r;

	if (keeps_mask)
		blocking = atomic_load_explicit(&handlers_blocking_carrier, memory_order_relaxed);
	if (keeps_mask && action != NULL) {
		told = *action;
		if (agent_is_recorded_process())
			note_masks(bit, &told.sa_mask);
		masks_as_kernel(&told.sa_mask);
		action = &told;
	}
	r = libc_next()->sigaction(signo, action, old);
	if (r != 0 || old == NULL)
		return r;
	if (old->sa_sigaction == dispatch && (old->sa_flags & SA_SIGINFO))
		read_program(find(signo), old);
	else if (keeps_mask)
		masks_as_program(&old->sa_mask, blocking & bit);
	return r;
}

WRAPPER int sigaction(int signo, const struct sigaction *action, struct sigaction *old)
{
	if (dispositions_owned(signo) && agent_is_recorded_process())
		return own_sigaction(signo, action, old);
	return other_sigaction(signo, action, old);
}

WRAPPER int __sigaction(int signo, const struct sigaction *action, struct sigaction *old)
{
	return sigaction(signo, action, old);
}

/* signal() and its kin for a signal of ours: @flags as this dialect has them. */
static __sighandler_t set_handler(int signo, __sighandler_t handler, int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, old;

	if (handler == SIG_ERR) {
		errno = EINVAL;
		return SIG_ERR;
	}
	if (!(flags & SA_NODEFER))
		sigaddset(&action.sa_mask, signo);
	return sigaction(signo, &action, &old) < 0 ? SIG_ERR : old.sa_handler;
}

WRAPPER __sighandler_t signal(int signo, __sighandler_t handler)
{
	const struct disposition *disposition = find(signo);

	if (owned(disposition))
		return set_handler(signo, handler, disposition->ends_calls ? 0 : SA_RESTART);
	return libc_next()->signal(signo, handler);
}

WRAPPER __sighandler_t bsd_signal(int signo, __sighandler_t handler)
{
	return signal(signo, handler);
}

WRAPPER __sighandler_t ssignal(int signo, __sighandler_t handler)
{
	return signal(signo, handler);
}

WRAPPER __sighandler_t sysv_signal(int signo, __sighandler_t handler)
{
	if (dispositions_owned(signo))
		return set_handler(signo, handler, (int)SA_RESETHAND | SA_NODEFER);
	return libc_next()->sysv_signal(signo, handler);
}

WRAPPER __sighandler_t __sysv_signal(int signo, __sighandler_t handler)
{
	return sysv_signal(signo, handler);
}

WRAPPER __sighandler_t sigset(int signo, __sighandler_t handler)
{
	__sighandler_t old;
	sigset_t one, before;

	if (!dispositions_owned(signo))
		return libc_next()->sigset(signo, handler);
	sigemptyset(&one);
	sigaddset(&one, signo);
	if (handler == SIG_HOLD) {
		struct sigaction action;

		if (sigprocmask(SIG_BLOCK, &one, &before) < 0 ||
		    sigaction(signo, NULL, &action) < 0)
			return SIG_ERR;
		return sigismember(&before, signo) ? SIG_HOLD : action.sa_handler;
	}
	old = set_handler(signo, handler, SA_NODEFER);
	if (old == SIG_ERR || sigprocmask(SIG_UNBLOCK, &one, &before) < 0)
		return SIG_ERR;
	return sigismember(&before, signo) ? SIG_HOLD : old;
}

WRAPPER int sigignore(int signo)
{
	if (!dispositions_owned(signo))
		return libc_next()->sigignore(signo);
	return set_handler(signo, SIG_IGN, 0) == SIG_ERR ? -1 : 0;
}

WRAPPER int siginterrupt(int signo, int ends_calls)
{
	struct disposition *disposition = find(signo);
	struct sigaction action;

	if (!owned(disposition))
		return libc_next()->siginterrupt(signo, ends_calls);
	if (sigaction(signo, NULL, &action) < 0)
		return -1;
	disposition->ends_calls = ends_calls != 0;
	if (ends_calls)
		action.sa_flags &= ~(int)SA_RESTART;
	else
		action.sa_flags |= (int)SA_RESTART;
	return sigaction(signo, &action, NULL);
}
