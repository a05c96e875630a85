/* SPDX-License-Identifier: MIT */
/*
 * The system call that a thread is blocked in, and whether it is the interpreter lock.
 *
 * /proc/PID/task/TID/syscall has the number and the arguments, in hexadecimal, of a blocked call:
 *
 *   202 0x7f1e38 0x189 0x0 .. 0x7ffd10 0x7f1e99      futex(address, ..), stack pointer, pc
 *   running                                          or ready to run
 *   -1 0x7ffd10 0x7f1e99                             blocked, but in no call: a page fault
 *
 * The lock of the main interpreter is a condition variable inside the runtime's own state (the
 * symbol _PyRuntime, with its size), and nothing else in there is waited for on a futex, so an
 * address inside is the lock's in every version. For a sub-interpreter's own lock, and for threads
 * that a free-threaded build has stopped, the thread's state must be asked: the futex is given
 * back.
 */
#include "tool/reader/wait_kind.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum stance wait_kind_read(pid_t pid, uint32_t tid, const struct lock_place *lock,
			   uint64_t *ret_futex)
{
	char text[256], *at;
	uint64_t address;
	ssize_t length;
	long number;
	int fd;

	*ret_futex = 0;
	snprintf(text, sizeof(text), "/proc/%d/task/%u/syscall", pid, tid);
	fd = open(text, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return STANCE_UNKNOWN;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		return STANCE_UNKNOWN;
	text[length] = 0;
	if (!strncmp(text, "running", 7))
		return STANCE_RUNS;
	number = strtol(text, &at, 10);
	address = strtoull(at, NULL, 16);
	if (number == SYS_futex && address - lock->start < lock->bytes)
		return STANCE_LOCK;
	if (number == SYS_futex)
		*ret_futex = address;
	return STANCE_WAITS;
}
