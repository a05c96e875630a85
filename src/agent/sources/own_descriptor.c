/* SPDX-License-Identifier: MIT */
/*
 * The one exception to the rule that the target holds no descriptor of ours. Numbers are given
 * from the lowest free one up, so a duplicate has a low one for a moment, about 1 us, before it is
 * a high one; a thread that opens a file in that moment gets a higher number than it would.
 *
 * The program may close what it did not open, and use the numbers again. So nothing is read, set or
 * closed through a number that was not looked at just before:
 *
 *   F_GETSIG     SIGNAL_33, which is for no one else to set
 *   F_GETOWN_EX  this very thread; within it a number taken anew is struck from all its events
 *
 * What is gone is taken again: the recorder has the event open all the while, so it overflows, and
 * in that overflow's handler the thread has its chance. Nothing is lost by it. Not in a program
 * with a system call filter, which may kill for the call: it has a lost event instead.
 */
#include "agent/sources/own_descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/guard/agent.h"
#include "agent/sources/signal_33.h"

/* Where our numbers begin: above what programs use, but no table of descriptors of megabytes. */
#define HIGH_NUMBER	  2048
#define HIGH_NUMBER_LIMIT 4096 /* of RLIMIT_NOFILE, for that; below it the limit's last quarter */

#ifndef SYS_pidfd_open
#define SYS_pidfd_open	434
#define SYS_pidfd_getfd 438
#endif

static int high_number(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= HIGH_NUMBER_LIMIT)
		return HIGH_NUMBER;
	return (int)(limit.rlim_cur - limit.rlim_cur / 4);
}

/* @fd under a high number, the low one closed. Raw calls: close() is a cancellation point. */
static int move_high(int fd)
{
	long high = syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, high_number());
	int error = errno;

	syscall(SYS_close, fd);
	return high < 0 ? -error : (int)high;
}

static bool is_ours(int fd)
{
	return syscall(SYS_fcntl, fd, F_GETSIG) == SIGNAL_33;
}

static bool is_of_thread(int fd, uint32_t tid)
{
	struct f_owner_ex owner = {0};

	return is_ours(fd) && syscall(SYS_fcntl, fd, F_GETOWN_EX, &owner) == 0 &&
	       owner.type == F_OWNER_TID && (uint32_t)owner.pid == tid;
}

/* A pidfd of the recorder; not of who has its number when it has died. */
static int open_recorder(void)
{
	long fd;

	if ((uint32_t)getppid() != agent.parent)
		return -ESRCH;
	fd = syscall(SYS_pidfd_open, agent.parent, 0);
	fd = fd < 0 ? -errno : move_high((int)fd);
	if (fd >= 0)
		syscall(SYS_fcntl, fd, F_SETSIG, SIGNAL_33); /* for is_ours() */
	return (int)fd;
}

void own_descriptor_begin(void)
{
	atomic_store_explicit(&agent.perf_async.recorder, open_recorder(), memory_order_relaxed);
}

/* The pidfd in place of @gone. Threads that find out at once use one: the first there. */
static int open_recorder_again(int gone)
{
	int fd = open_recorder();

	if (fd < 0 || atomic_compare_exchange_strong(&agent.perf_async.recorder, &gone, fd))
		return fd;
	syscall(SYS_close, fd);
	return gone; /* the other's */
}

/* Through a pidfd that may be the program's by now: so the duplicate is looked at. */
static int duplicate_through(int recorder, int recorders_fd, uint32_t tid)
{
	long fd;

	if (recorder < 0)
		return recorder;
	fd = syscall(SYS_pidfd_getfd, recorder, recorders_fd, 0);
	if (fd < 0)
		return -errno;
	if (is_of_thread((int)fd, tid))
		return move_high((int)fd);
	syscall(SYS_close, fd);
	return -EBADF;
}

int own_descriptor_take(struct slot *slot, uint32_t event)
{
	int recorder = atomic_load_explicit(&agent.perf_async.recorder, memory_order_relaxed);
	int fd = duplicate_through(recorder, slot->event_fds[event], slot->tid);

	if (fd < 0 && recorder >= 0 && !is_ours(recorder))
		fd = duplicate_through(open_recorder_again(recorder), slot->event_fds[event],
				       slot->tid);
	if (fd < 0)
		return fd;
	for (uint32_t i = 0; i < EVENTS_MAX; i++)
		if (slot->own_fds[i] == fd)
			slot->own_fds[i] = -1; /* it was closed as well */
	slot->own_fds[event] = fd;
	return fd;
}

int own_descriptor(struct slot *slot, uint32_t event)
{
	int fd = slot->own_fds[event];

	if (fd >= 0 && is_of_thread(fd, slot->tid))
		return fd;
	if (slot->event_fds[event] < 0 || prctl(PR_GET_SECCOMP) != 0)
		return -EBADF;
	return own_descriptor_take(slot, event);
}

void own_descriptor_drop(struct slot *slot, uint32_t event)
{
	int fd = slot->own_fds[event];

	slot->event_fds[event] = slot->own_fds[event] = -1;
	atomic_signal_fence(memory_order_seq_cst);
	if (fd < 0 || !is_of_thread(fd, slot->tid))
		return;
	syscall(SYS_ioctl, fd, PERF_EVENT_IOC_DISABLE, 0);
	syscall(SYS_close, fd);
}

/* Slots are the parent's, only read. */
void own_descriptors_forked(void)
{
	const struct memory *memory = &agent.capture.memory;
	int recorder = atomic_load_explicit(&agent.perf_async.recorder, memory_order_relaxed);

	for (uint32_t i = 0; i < memory->header->sizes.nr_slots; i++) {
		const struct slot *slot = &memory->slots[i];

		if (atomic_load_explicit(&slot->state, memory_order_acquire) != SLOT_ACTIVE)
			continue;
		for (uint32_t e = 0; e < EVENTS_MAX; e++)
			if (slot->own_fds[e] >= 0 && is_ours(slot->own_fds[e]))
				syscall(SYS_close, slot->own_fds[e]);
	}
	if (recorder >= 0 && is_ours(recorder))
		syscall(SYS_close, recorder);
	atomic_store_explicit(&agent.perf_async.recorder, -EBADF, memory_order_relaxed);
}
