/* SPDX-License-Identifier: MIT */
/*
 * The definitions behind our wrappers: what the program would call if we were not there.
 */
#ifndef PATHPROF_AGENT_GUARD_LIBC_H
#define PATHPROF_AGENT_GUARD_LIBC_H

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <threads.h>
#include <unistd.h>
#include <wordexp.h>

/* A function of ours that the program calls in libc's stead; listed in agent.map. */
#define WRAPPER __attribute__((visibility("default")))

/* Names that no header declares under _GNU_SOURCE. */
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
		      void (*fini)(void), void (*rtld_fini)(void), void *stack_end);
__sighandler_t bsd_signal(int signo, __sighandler_t handler);
int __sigaction(int signo, const struct sigaction *action, struct sigaction *old);
int __sigpause(int signo_or_mask, int is_signo);
int __xpg_sigpause(int signo);
int __ppoll_chk(struct pollfd *fds, nfds_t nr_fds, const struct timespec *timeout,
		const sigset_t *mask, size_t fds_bytes);

#define LIBC_FUNCTIONS(X)             \
	X(__libc_start_main)          \
	X(pthread_create)             \
	X(thrd_create)                \
	X(pthread_attr_getsigmask_np) \
	X(_Fork)                      \
	X(execve)                     \
	X(execvpe)                    \
	X(fexecve)                    \
	X(execveat)                   \
	X(posix_spawn)                \
	X(posix_spawnp)               \
	X(system)                     \
	X(popen)                      \
	X(wordexp)                    \
	X(sigaction)                  \
	X(signal)                     \
	X(sysv_signal)                \
	X(sigset)                     \
	X(sigignore)                  \
	X(siginterrupt)               \
	X(sigprocmask)                \
	X(pthread_sigmask)            \
	X(sigwait)                    \
	X(sigwaitinfo)                \
	X(sigtimedwait)               \
	X(sigsuspend)                 \
	X(ppoll)                      \
	X(__ppoll_chk)                \
	X(pselect)                    \
	X(epoll_pwait)                \
	X(epoll_pwait2)

struct libc {
#define X(name) __typeof__(&name) name;
	LIBC_FUNCTIONS(X)
#undef X
};

/**
 * libc_next - the next definitions after ours, looked up at the first call
 * Normally that is at the start, before main(); a constructor of the program may come first. A
 * name that this libc does not have is NULL: nobody can have called our wrapper of it.
 * Signal-safe after the first call.
 */
const struct libc *libc_next(void);

#endif
