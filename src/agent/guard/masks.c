/* SPDX-License-Identifier: MIT */
/*
 * SIGTRAP stays unblocked in the kernel where perf events are in use; the program believes
 * otherwise.
 *
 * A blocked event would stay pending and tell of the wrong place, a sigwait() on a full set would
 * take it, and some kernels kill. So, in threads with a slot and only then:
 *
 *   program's view   bit PROGRAM_BLOCKS_TRAP in slot->program_blocks, read and written by
 *                    sigprocmask() and pthread_sigmask(); inherited by new threads
 *   kernel's view    the program's mask without SIGTRAP
 *
 * A SIGTRAP that somebody sent and that the program blocks reaches our handler all the same: it is
 * queued again and the kernel's mask then blocks it (PROGRAM_TRAP_HELD), so that sigwait() and
 * unblocking find it as without us. Until then this thread's perf events come late and are
 * counted so. Not covered: masks set by raw system calls; events come late then and are counted.
 */
#include "agent/guard/agent.h"

#include <errno.h>
#include <sys/syscall.h>
#include <ucontext.h>

#define KERNEL_SIGSET_BYTES 8
#define TRAP_BIT	    (1ull << (SIGTRAP - 1))

/* The calling thread's slot where the wrappers have work to do. */
static struct slot *guarded_slot(void)
{
	return agent_slot != NULL && dispositions_owned(SIGTRAP) ? agent_slot : NULL;
}

/* @set without SIGTRAP, in @copy, for the kernel. */
static const sigset_t *without_trap(const struct slot *slot, const sigset_t *set, sigset_t *copy)
{
	if (slot == NULL || set == NULL || (slot->program_blocks & PROGRAM_TRAP_HELD))
		return set;
	*copy = *set;
	sigdelset(copy, SIGTRAP);
	return copy;
}

void masks_begin(struct slot *slot)
{
	const uint64_t trap = TRAP_BIT;
	uint64_t before = 0;

	/* A thread that a thread of ours made starts with SIGTRAP unblocked: no system call. */
	if (slot->start_routine != 0 && !(slot->program_blocks & PROGRAM_STARTS_BLOCKING))
		return;
	slot->program_blocks =
		slot->program_blocks & PROGRAM_STARTS_BLOCKING ? PROGRAM_BLOCKS_TRAP : 0;
	syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &trap, &before, KERNEL_SIGSET_BYTES);
	if (before & TRAP_BIT)
		slot->program_blocks |= PROGRAM_BLOCKS_TRAP;
}

uint32_t masks_of_new_thread(const pthread_attr_t *attributes)
{
	sigset_t mask;

	if (attributes != NULL && libc_next()->pthread_attr_getsigmask_np != NULL &&
	    libc_next()->pthread_attr_getsigmask_np(attributes, &mask) == 0)
		return sigismember(&mask, SIGTRAP) == 1 ? PROGRAM_STARTS_BLOCKING : 0;
	return agent_slot != NULL ? agent_slot->program_blocks & PROGRAM_BLOCKS_TRAP : 0;
}

bool masks_hold_trap(const siginfo_t *info, void *context)
{
	struct slot *slot = guarded_slot();
	ucontext_t *interrupted = context;

	if (slot == NULL || !(slot->program_blocks & PROGRAM_BLOCKS_TRAP) || info->si_code > 0)
		return false;
	slot->program_blocks |= PROGRAM_TRAP_HELD;
	syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGTRAP, info);
	sigaddset(&interrupted->uc_sigmask, SIGTRAP);
	return true;
}

static void set_trap_in_kernel(int how)
{
	const uint64_t trap = TRAP_BIT;
	int saved_errno = errno;

	if (guarded_slot() != NULL && (agent_slot->program_blocks & PROGRAM_BLOCKS_TRAP))
		syscall(SYS_rt_sigprocmask, how, &trap, NULL, KERNEL_SIGSET_BYTES);
	errno = saved_errno;
}

void masks_to_kernel(void)
{
	set_trap_in_kernel(SIG_BLOCK);
}

void masks_exec_failed(void)
{
	if (agent_slot != NULL && !(agent_slot->program_blocks & PROGRAM_TRAP_HELD))
		set_trap_in_kernel(SIG_UNBLOCK);
}

/* What the program blocks after it asked for this. */
static uint32_t blocks_after(uint32_t blocks, int how, const sigset_t *set)
{
	bool named = sigismember(set, SIGTRAP) == 1;

	if (how == SIG_BLOCK)
		return named ? blocks | PROGRAM_BLOCKS_TRAP : blocks;
	if (how == SIG_UNBLOCK)
		return named ? 0 : blocks;
	return named ? blocks | PROGRAM_BLOCKS_TRAP : 0;
}

static int change_mask(int (*next)(int, const sigset_t *, sigset_t *), int how, const sigset_t *set,
		       sigset_t *old)
{
	struct slot *slot = guarded_slot();
	const sigset_t *told;
	uint32_t before;
	sigset_t copy;
	int r;

	if (slot == NULL)
		return next(how, set, old);
	before = slot->program_blocks;
	told = how == SIG_UNBLOCK ? set : without_trap(slot, set, &copy);
	/* First ours: unblocking a held signal runs its handler inside the call. */
	if (set != NULL)
		slot->program_blocks = blocks_after(before, how, set);
	r = next(how, told, old);
	if (r != 0)
		slot->program_blocks = before;
	else if (old != NULL && (before & PROGRAM_BLOCKS_TRAP))
		sigaddset(old, SIGTRAP);
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

WRAPPER int sigwait(const sigset_t *set, int *signo)
{
	struct slot *slot = guarded_slot();
	sigset_t copy;

	if (slot == NULL || sigismember(set, SIGTRAP) != 1)
		return libc_next()->sigwait(set, signo);
	/* sigwait() restarts itself; a SIGTRAP held meanwhile must end the wait. */
	for (;;) {
		int r = libc_next()->sigtimedwait(without_trap(slot, set, &copy), NULL, NULL);

		if (r > 0) {
			*signo = r;
			return 0;
		}
		if (errno != EINTR)
			return errno;
	}
}

WRAPPER int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	struct slot *slot = guarded_slot();
	uint32_t held = slot != NULL ? slot->program_blocks & PROGRAM_TRAP_HELD : 0;
	sigset_t copy;
	int r = libc_next()->sigtimedwait(without_trap(slot, set, &copy), info, timeout);

	/* A SIGTRAP of the program's came and is held now: that is what it waits for. */
	if (r < 0 && errno == EINTR && slot != NULL && !held &&
	    (slot->program_blocks & PROGRAM_TRAP_HELD))
		r = libc_next()->sigtimedwait(set, info, timeout);
	return r;
}

WRAPPER int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	if (guarded_slot() == NULL)
		return libc_next()->sigwaitinfo(set, info);
	return sigtimedwait(set, info, NULL);
}

WRAPPER int signalfd(int fd, const sigset_t *set, int flags)
{
	sigset_t copy;

	return libc_next()->signalfd(fd, without_trap(guarded_slot(), set, &copy), flags);
}

/* ---- calls that change the mask for their time ---- */

struct passing_mask {
	struct slot *slot;
	uint32_t before;
	sigset_t copy;
};

static const sigset_t *enter(struct passing_mask *passing, const sigset_t *set)
{
	passing->slot = set != NULL ? guarded_slot() : NULL;
	if (passing->slot == NULL)
		return set;
	passing->before = passing->slot->program_blocks;
	passing->slot->program_blocks = blocks_after(passing->before, SIG_SETMASK, set);
	return without_trap(passing->slot, set, &passing->copy);
}

static void leave(const struct passing_mask *passing)
{
	const uint64_t trap = TRAP_BIT;
	uint32_t held;

	if (passing->slot == NULL)
		return;
	held = passing->slot->program_blocks & PROGRAM_TRAP_HELD;
	passing->slot->program_blocks = passing->before | held;
	/* Held during the call, which it ended: now the program takes it. */
	if (held && !(passing->before & PROGRAM_BLOCKS_TRAP)) {
		int saved_errno = errno;

		passing->slot->program_blocks = 0;
		syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &trap, NULL, KERNEL_SIGSET_BYTES);
		errno = saved_errno;
	}
}

WRAPPER int sigsuspend(const sigset_t *set)
{
	struct passing_mask passing;
	int r = libc_next()->sigsuspend(enter(&passing, set));

	leave(&passing);
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
	struct passing_mask passing;
	int r = libc_next()->ppoll(fds, nr_fds, timeout, enter(&passing, mask));

	leave(&passing);
	return r;
}

WRAPPER int __ppoll_chk(struct pollfd *fds, nfds_t nr_fds, const struct timespec *timeout,
			const sigset_t *mask, size_t fds_bytes)
{
	struct passing_mask passing;
	int r = libc_next()->__ppoll_chk(fds, nr_fds, timeout, enter(&passing, mask), fds_bytes);

	leave(&passing);
	return r;
}

WRAPPER int pselect(int nr_fds, fd_set *readable, fd_set *writable, fd_set *exceptional,
		    const struct timespec *timeout, const sigset_t *mask)
{
	struct passing_mask passing;
	int r = libc_next()->pselect(nr_fds, readable, writable, exceptional, timeout,
				     enter(&passing, mask));

	leave(&passing);
	return r;
}

WRAPPER int epoll_pwait(int fd, struct epoll_event *events, int max_events, int timeout,
			const sigset_t *mask)
{
	struct passing_mask passing;
	int r = libc_next()->epoll_pwait(fd, events, max_events, timeout, enter(&passing, mask));

	leave(&passing);
	return r;
}

WRAPPER int epoll_pwait2(int fd, struct epoll_event *events, int max_events,
			 const struct timespec *timeout, const sigset_t *mask)
{
	struct passing_mask passing;
	int r = libc_next()->epoll_pwait2(fd, events, max_events, timeout, enter(&passing, mask));

	leave(&passing);
	return r;
}
