/* SPDX-License-Identifier: MIT */
/*
 * A system call that was broken off while an event's SIGTRAP was on its way, or by a signal that
 * the program ignores or blocks and that we take all the same.
 *
 * The kernel decides what becomes of such a call at the first signal it delivers, and takes a
 * SIGTRAP before any other: with SA_RESTART, which we need for programs that ask for it, the call
 * is set to begin again, and the EINTR that the program's own handler without SA_RESTART calls for
 * never comes (an alarm meant to end a read, say). One file per architecture.
 */
#ifndef PATHPROF_AGENT_SOURCES_INTERRUPTED_CALL_H
#define PATHPROF_AGENT_SOURCES_INTERRUPTED_CALL_H

/**
 * interrupted_call_settle - decide again as if our signal were not there
 * @context: the ucontext_t of our handler, in which all other signals are blocked
 * Where the call was set to begin again although the first pending signal of the program's ends it:
 * it fails with EINTR, and that signal's handler runs in this thread. At once and again after the
 * sample: other threads may take what is pending, and more may come. Costs a few loads where no
 * call was broken off. Signal-safe.
 */
void interrupted_call_settle(void *context);

/**
 * interrupted_call_resume - decide again as if nobody had sent this signal
 * @signo: sent to the program, which ignores or blocks it: without us no call would be woken by it
 * @context: the ucontext_t of its handler, in which all other signals are blocked
 * Where the call that it broke off can go on, it does: it begins again, or what is left of a
 * relative timeout is waited out here and now, with the program's other signals open. A call
 * that a pending signal of the program's ends stays ended. Signal-safe.
 */
void interrupted_call_resume(int signo, void *context);

#endif
