/* SPDX-License-Identifier: MIT */
/*
 * Perf events are opened by the recorder, for the thread's id.
 */
#ifndef PATHPROF_AGENT_SOURCES_ASK_RECORDER_H
#define PATHPROF_AGENT_SOURCES_ASK_RECORDER_H

#include "agent/capture/capture.h"

/**
 * ask_recorder_to_arm - have the calling thread's perf events opened, all triggers' at once
 * Asks through slot->arming (core/memory/memory_types.h), rings, and waits at most ARM_WAIT_NS,
 * with events by signal ARM_WAIT_SIGNAL_NS; a second call gives the first one's answer. A thread
 * for which there is nothing to open (only inherited events, and not the main thread) is armed
 * without a system call. Returns 0, -ETIMEDOUT (the events may still come), -EPIPE where the
 * recorder is gone, or the negative errno of opening.
 */
int ask_recorder_to_arm(struct capture *capture, struct slot *slot);

/**
 * ask_recorder_for_whole_period - have the first period of one of the calling thread's events end
 * To be called in the handler of an overflow: nothing is counted while the thread waits, at most
 * WHOLE_WAIT_NS, and not again within WHOLE_RETRY_NS. What became of it is in slot->first_period.
 * Signal-safe.
 */
void ask_recorder_for_whole_period(struct slot *slot, uint32_t event, uint64_t now_ns);

/**
 * ask_recorder_to_end - have one of the calling thread's events disabled for good
 * To be called in its handler, as the above; waits at most WHOLE_WAIT_NS for the recorder's turn.
 * Signal-safe.
 */
void ask_recorder_to_end(struct slot *slot, uint32_t event, uint64_t now_ns);

#endif
