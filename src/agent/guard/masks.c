/* SPDX-License-Identifier: MIT */
/*
 * SIGTRAP stays unblocked in the kernel where perf events are in use; the program believes
 * otherwise.
 *
 * A blocked event would stay pending and tell of the wrong place, and some kernels kill. So what
 * the program has of SIGTRAP is kept in the kernel's mask too, but at another bit: SIGSTKFLT, which
 * no kernel sends.
 *
 *   program's view   SIGTRAP          kernel's view   SIGSTKFLT, in masks and in sa_mask
 *                    SIGSTKFLT                        nowhere: kept in the slot, for reading back
 *
 * Everything that copies masks without asking us carries it along: the return from a handler,
 * siglongjmp(), setcontext(), fork, vfork, clone and new threads. The price: a SIGSTKFLT that
 * somebody sends waits as long as SIGTRAP is blocked, and getcontext() shows it.
 *
 * A SIGTRAP that somebody sent and that the program blocks reaches our handler all the same: it is
 * queued again, to the whole process where it was sent to that, and the kernel's mask of this
 * thread then blocks it, so that sigwait() anywhere, signalfd() and unblocking find it as without
 * us; the call that it broke off goes on (sources/interrupted_call.h). From then to the thread's
 * next change of its mask its events come late and are counted so. Not covered: masks set by raw
 * system calls; events come late then and are counted.
 */
#include "agent/guard/agent.h"

#include <errno.h>
#include <sys/syscall.h>
#include <ucontext.h>

#define KERNEL_SIGSET_BYTES 8
#define BIT(signo)	    (1ull << ((signo)-1))
#define TRAP_BIT	    BIT(SIGTRAP)
#define CARRIER_BIT	    BIT(MASKS_CARRIER)
#define NS_PER_S	    1000000000ll

/*
 * A call of libc's between the wrapper and the kernel stands at most so far below the wrapper's
 * frame; the frame of a signal is larger.
 */
#define CALL_FRAMES_BYTES 1024

/* A call that has a mask of its own for its time, in the wrapper's frame. */
struct passing_mask {
	struct passing_mask *outer;
	bool active;
	bool blocks_trap; /* in the program's view of it */
	bool held;	  /* one came meanwhile */
	sigset_t copy;	  /* what the kernel is told */
};

/* The calling thread's innermost; may be stale after a jump out of a handler: see is_in(). */
static __thread struct passing_mask *passing __attribute__((tls_model("initial-exec")));

static bool has(const sigset_t *set, int signo)
{
	return sigismember(set, signo) == 1;
}

static void put(sigset_t *set, int signo, bool in)
{
	if (in)
		sigaddset(set, signo);
	else
		sigdelset(set, signo);
}

static bool guarded(void)
{
	return dispositions_owned(SIGTRAP);
}

void masks_as_kernel(sigset_t *set)
{
	put(set, MASKS_CARRIER, has(set, SIGTRAP));
	sigdelset(set, SIGTRAP);
}

void masks_as_program(sigset_t *set, bool has_carrier)
{
	put(set, SIGTRAP, has(set, MASKS_CARRIER) || has(set, SIGTRAP));
	put(set, MASKS_CARRIER, has_carrier);
}

static uint64_t change_kernel(int how, uint64_t set)
{
	int saved_errno = errno;
	uint64_t before = 0;

	syscall(SYS_rt_sigprocmask, how, &set, &before, KERNEL_SIGSET_BYTES);
	errno = saved_errno;
	return before;
}

/* Has the program the carrier itself in the calling thread's mask? */
static bool blocks_carrier(void)
{
	return agent_slot != NULL && (agent_slot->program_blocks & PROGRAM_BLOCKS_CARRIER);
}

static void set_blocks_carrier(bool blocks)
{
	/* A vfork child has masks of its own, but our slot. */
	if (agent_slot == NULL || blocks == blocks_carrier() || !agent_is_recorded_process())
		return;
	if (blocks)
		agent_slot->program_blocks |= PROGRAM_BLOCKS_CARRIER;
	else
		agent_slot->program_blocks &= ~(uint32_t)PROGRAM_BLOCKS_CARRIER;
}

/* The kernel has the program's own mask; from now on as we keep it. */
static void take_over(void)
{
	uint64_t before = change_kernel(SIG_UNBLOCK, TRAP_BIT);

	set_blocks_carrier(before & CARRIER_BIT);
	if (before & TRAP_BIT)
		change_kernel(SIG_BLOCK, CARRIER_BIT);
	else if (before & CARRIER_BIT)
		change_kernel(SIG_UNBLOCK, CARRIER_BIT);
}

void masks_begin(struct slot *slot)
{
	/* Else it has its maker's, as we keep it: no system call. */
	if (slot->start_routine == 0 || (slot->program_blocks & PROGRAM_STARTS_OWN))
		take_over();
	else if (slot->program_blocks & PROGRAM_TRAP_WAS_HELD)
		change_kernel(SIG_UNBLOCK, TRAP_BIT);
}

uint32_t masks_of_new_thread(const pthread_attr_t *attributes)
{
	sigset_t mask;

	if (attributes != NULL && libc_next()->pthread_attr_getsigmask_np != NULL &&
	    libc_next()->pthread_attr_getsigmask_np(attributes, &mask) == 0)
		return PROGRAM_STARTS_OWN;
	if (agent_slot == NULL) /* a thread without one may have held one, unnoticed */
		return PROGRAM_TRAP_WAS_HELD;
	return agent_slot->program_blocks & (PROGRAM_BLOCKS_CARRIER | PROGRAM_TRAP_WAS_HELD);
}

/* Did the signal come in the call itself, under the mask that passes? */
static bool is_in(const struct passing_mask *call, const ucontext_t *interrupted)
{
#if defined(__x86_64__)
	uintptr_t sp = (uintptr_t)interrupted->uc_mcontext.gregs[REG_RSP];
	int64_t result = (int64_t)interrupted->uc_mcontext.gregs[REG_RAX];
#else
	uintptr_t sp = interrupted->uc_mcontext.sp;
	int64_t result = (int64_t)interrupted->uc_mcontext.regs[0];
#endif

	return call != NULL && result == -EINTR && sp < (uintptr_t)call &&
	       (uintptr_t)call - sp < CALL_FRAMES_BYTES;
}

/*
 * Behind si_value, where the kernel keeps 16 bytes as they are. Only the main thread may queue a
 * kill()'s siginfo to its own process; another's travels as a sigqueue()'s and has this mark.
 */
#define MARK_AT 40

static const uint64_t was_sent_by_kill = 0x6b696c6c65642121ull;

void masks_read_mark(siginfo_t *info)
{
	uint64_t mark;

	__builtin_memcpy(&mark, (char *)info + MARK_AT, sizeof(mark));
	if (info->si_code != SI_QUEUE || mark != was_sent_by_kill)
		return;
	__builtin_memset((char *)info + MARK_AT, 0, sizeof(mark));
	info->si_code = SI_USER;
}

/* To the whole process. */
static void queue_to_all(const siginfo_t *info)
{
	siginfo_t marked = *info;

	if (info->si_code == SI_USER && getpid() != gettid()) {
		marked.si_code = SI_QUEUE;
		__builtin_memcpy((char *)&marked + MARK_AT, &was_sent_by_kill,
				 sizeof(was_sent_by_kill));
	}
	syscall(SYS_rt_sigqueueinfo, getpid(), SIGTRAP, &marked);
}

/*
 * To whom it was sent. A thread has one pending at most, so an event that came since its handler
 * began makes room (and is lost, which its count tells).
 */
static void queue_again(const siginfo_t *info)
{
	const struct timespec no_time = {0};
	const uint64_t trap = TRAP_BIT;
	siginfo_t other;

	if (info->si_code != SI_TKILL) {
		queue_to_all(info);
		return;
	}
	if (syscall(SYS_rt_sigtimedwait, &trap, &other, &no_time, KERNEL_SIGSET_BYTES) == SIGTRAP &&
	    other.si_code != TRAP_PERF && other.si_code != SI_TKILL)
		queue_to_all(&other);
	syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGTRAP, info);
}

bool masks_hold_trap(const siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;
	struct passing_mask *call = is_in(passing, interrupted) ? passing : NULL;

	if (!guarded() || info->si_code > 0)
		return false;
	if (call != NULL ? !call->blocks_trap : !has(&interrupted->uc_sigmask, MASKS_CARRIER))
		return false;
	sigaddset(&interrupted->uc_sigmask, SIGTRAP);
	if (agent_slot != NULL)
		agent_slot->program_blocks |= PROGRAM_TRAP_WAS_HELD;
	if (call != NULL) {
		call->held = true;
		sigaddset(&call->copy, SIGTRAP); /* the kernel reads it anew if the call goes on */
	}
	queue_again(info);
	return true;
}

void masks_to_kernel(void)
{
	uint64_t mask;

	if (!guarded())
		return;
	mask = change_kernel(SIG_BLOCK, 0);
	if (mask & CARRIER_BIT)
		change_kernel(SIG_BLOCK, TRAP_BIT);
	if (blocks_carrier())
		change_kernel(SIG_BLOCK, CARRIER_BIT);
	else if (mask & CARRIER_BIT)
		change_kernel(SIG_UNBLOCK, CARRIER_BIT);
}

void masks_exec_failed(void)
{
	if (guarded())
		take_over();
}

/* What the program has of the carrier after it asked for this. */
static bool carrier_after(bool before, int how, const sigset_t *set)
{
	if (how == SIG_SETMASK)
		return has(set, MASKS_CARRIER);
	return has(set, MASKS_CARRIER) ? how == SIG_BLOCK : before;
}

static int change_mask(int (*next)(int, const sigset_t *, sigset_t *), int how, const sigset_t *set,
		       sigset_t *old)
{
	bool before = blocks_carrier();
	sigset_t copy;
	int r;

	if (!guarded())
		return next(how, set, old);
	if (set != NULL) {
		bool after = carrier_after(before, how, set);

		copy = *set;
		masks_as_kernel(&copy);
		/* A held one is let go too. */
		if (how == SIG_UNBLOCK)
			put(&copy, SIGTRAP, has(set, SIGTRAP));
		set_blocks_carrier(after);
		set = &copy;
	}
	r = next(how, set, old);
	if (r != 0)
		set_blocks_carrier(before);
	else if (old != NULL)
		masks_as_program(old, before);
	return r;
}

WRAPPER int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	return change_mask(libc_next()->sigprocmask, how, set, old);
}

WRAPPER int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	return change_mask(libc_next()->pthread_sigmask, how, set, old);
}

/* ---- the older names ---- */

/* The first 32 signals as bits of an int. */
static int change_old_mask(int how, int mask)
{
	sigset_t set, old;

	sigemptyset(&set);
	set.__val[0] = (unsigned int)mask;
	return sigprocmask(how, &set, &old) < 0 ? -1 : (int)old.__val[0];
}

WRAPPER int sigblock(int mask)
{
	return change_old_mask(SIG_BLOCK, mask);
}

WRAPPER int sigsetmask(int mask)
{
	return change_old_mask(SIG_SETMASK, mask);
}

static int change_one(int how, int signo)
{
	sigset_t set;

	sigemptyset(&set);
	return sigaddset(&set, signo) < 0 ? -1 : sigprocmask(how, &set, NULL);
}

WRAPPER int sighold(int signo)
{
	return change_one(SIG_BLOCK, signo);
}

WRAPPER int sigrelse(int signo)
{
	return change_one(SIG_UNBLOCK, signo);
}

/* ---- waiting for signals: ours are not among them ---- */

/* The time until @deadline_ns. */
static struct timespec time_left(int64_t deadline_ns)
{
	int64_t left_ns = deadline_ns - (int64_t)agent_now_ns();

	if (left_ns < 0)
		left_ns = 0;
	return (struct timespec){.tv_sec = left_ns / NS_PER_S, .tv_nsec = left_ns % NS_PER_S};
}

/* An event of ours was taken by the wait: it goes to our handler, here and now. */
static void put_back(const siginfo_t *info)
{
	int saved_errno = errno;

	syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGTRAP, info);
	change_kernel(SIG_UNBLOCK, TRAP_BIT);
	errno = saved_errno;
}

WRAPPER int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	struct timespec left;
	int64_t deadline_ns;
	siginfo_t got;
	int r;

	if (!guarded() || !has(set, SIGTRAP))
		return libc_next()->sigtimedwait(set, info, timeout);
	r = libc_next()->sigtimedwait(set, &got, timeout);
	if (r == SIGTRAP && got.si_code == TRAP_PERF) {
		deadline_ns = timeout == NULL
				      ? 0
				      : (int64_t)agent_now_ns() + timeout->tv_sec * NS_PER_S +
						timeout->tv_nsec;
		do {
			put_back(&got);
			if (timeout != NULL)
				left = time_left(deadline_ns);
			r = libc_next()->sigtimedwait(set, &got, timeout != NULL ? &left : NULL);
		} while (r == SIGTRAP && got.si_code == TRAP_PERF);
	}
	if (r == SIGTRAP)
		masks_read_mark(&got);
	if (r > 0 && info != NULL)
		*info = got;
	return r;
}

WRAPPER int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	if (!guarded())
		return libc_next()->sigwaitinfo(set, info);
	return sigtimedwait(set, info, NULL);
}

WRAPPER int sigwait(const sigset_t *set, int *signo)
{
	int saved_errno = errno, r;

	if (!guarded() || !has(set, SIGTRAP))
		return libc_next()->sigwait(set, signo);
	do
		r = sigtimedwait(set, NULL, NULL);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return errno;
	errno = saved_errno;
	*signo = r;
	return 0;
}

/* ---- calls that change the mask for their time ---- */

static const sigset_t *enter(struct passing_mask *call, const sigset_t *set)
{
	call->active = set != NULL && guarded();
	if (!call->active)
		return set;
	call->copy = *set;
	call->blocks_trap = has(set, SIGTRAP);
	call->held = false;
	masks_as_kernel(&call->copy);
	call->outer = passing;
	passing = call;
	return &call->copy;
}

/* What was held is let go: if the program blocks it still, our handler holds it again. */
static void leave(const struct passing_mask *call, int r)
{
	if (!call->active)
		return;
	passing = call->outer;
	if (call->held || (r < 0 && errno == EINTR))
		change_kernel(SIG_UNBLOCK, TRAP_BIT);
}

WRAPPER int sigsuspend(const sigset_t *set)
{
	struct passing_mask call;
	int r = libc_next()->sigsuspend(enter(&call, set));

	leave(&call, r);
	return r;
}

WRAPPER int __sigpause(int signo_or_mask, int is_signo)
{
	sigset_t set;

	sigemptyset(&set);
	if (!is_signo)
		set.__val[0] = (unsigned int)signo_or_mask;
	else if (sigprocmask(SIG_BLOCK, NULL, &set) < 0 || sigdelset(&set, signo_or_mask) < 0)
		return -1;
	return sigsuspend(&set);
}

WRAPPER int __xpg_sigpause(int signo)
{
	return __sigpause(signo, 1);
}

/* What a program calls that was not compiled as X/Open has it; <signal.h> renames the other. */
WRAPPER int bsd_sigpause(int mask) __asm__("sigpause");

WRAPPER int bsd_sigpause(int mask)
{
	return __sigpause(mask, 0);
}

WRAPPER int ppoll(struct pollfd *fds, nfds_t nr_fds, const struct timespec *timeout,
		  const sigset_t *mask)
{
	struct passing_mask call;
	int r = libc_next()->ppoll(fds, nr_fds, timeout, enter(&call, mask));

	leave(&call, r);
	return r;
}

WRAPPER int __ppoll_chk(struct pollfd *fds, nfds_t nr_fds, const struct timespec *timeout,
			const sigset_t *mask, size_t fds_bytes)
{
	struct passing_mask call;
	int r = libc_next()->__ppoll_chk(fds, nr_fds, timeout, enter(&call, mask), fds_bytes);

	leave(&call, r);
	return r;
}

WRAPPER int pselect(int nr_fds, fd_set *readable, fd_set *writable, fd_set *exceptional,
		    const struct timespec *timeout, const sigset_t *mask)
{
	struct passing_mask call;
	int r = libc_next()->pselect(nr_fds, readable, writable, exceptional, timeout,
				     enter(&call, mask));

	leave(&call, r);
	return r;
}

WRAPPER int epoll_pwait(int fd, struct epoll_event *events, int max_events, int timeout,
			const sigset_t *mask)
{
	struct passing_mask call;
	int r = libc_next()->epoll_pwait(fd, events, max_events, timeout, enter(&call, mask));

	leave(&call, r);
	return r;
}

WRAPPER int epoll_pwait2(int fd, struct epoll_event *events, int max_events,
			 const struct timespec *timeout, const sigset_t *mask)
{
	struct passing_mask call;
	int r = libc_next()->epoll_pwait2(fd, events, max_events, timeout, enter(&call, mask));

	leave(&call, r);
	return r;
}
