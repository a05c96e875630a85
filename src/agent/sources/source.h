/* SPDX-License-Identifier: MIT */
/*
 * What makes a running thread look at itself: one file per trigger, behind this seam.
 */
#ifndef PATHPROF_AGENT_SOURCES_SOURCE_H
#define PATHPROF_AGENT_SOURCES_SOURCE_H

#include <stdbool.h>

#include "agent/capture/capture.h"

struct source {
	const char *name;
	enum trigger trigger;

	/**
	 * process_start - take the signal; called once, before any thread is armed
	 * Returns 0 or a negative errno.
	 */
	int (*process_start)(struct capture *capture);

	/** thread_created - after each pthread_create of the program: take back what libc took */
	void (*thread_created)(void);

	/**
	 * thread_start - arm the calling thread for every event of this trigger
	 * Returns 0 or a negative errno (counted; the thread runs on unsampled).
	 */
	int (*thread_start)(struct capture *capture, struct slot *slot);

	/** thread_stop - disarm the calling thread; after it no tick comes */
	void (*thread_stop)(struct capture *capture, struct slot *slot);

	/** forked - in a fork child, before anything else: drop what it has a copy of; or NULL */
	void (*forked)(void);
};

extern const struct source source_cpu_timer;
extern const struct source source_perf_sigtrap;
extern const struct source source_perf_async;

#endif
