/* SPDX-License-Identifier: MIT */
/*
 * Signal 33, which two sources share: CPU timers and perf events by signal.
 */
#ifndef PATHPROF_AGENT_SOURCES_SIGNAL_33_H
#define PATHPROF_AGENT_SOURCES_SIGNAL_33_H

#include <signal.h>

#include "agent/capture/capture.h"

#define SIGNAL_33 33

/** signal_33_take - install our handler in the kernel. Twice does no harm. 0 or negative errno. */
int signal_33_take(void);

/** signal_33_retake - after a thread was made: libc may have installed its own handler */
void signal_33_retake(void);

/*
 * What the sources do with theirs; @tick has time, context and faults_blocked, no more. The slot is
 * the calling thread's, never NULL. Signal-safe.
 */
void cpu_timer_expired(struct slot *slot, const siginfo_t *info, struct tick *tick);
void perf_async_overflowed(struct slot *slot, const siginfo_t *info, struct tick *tick);

#endif
