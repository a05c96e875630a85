/* SPDX-License-Identifier: MIT */
/*
 * The thread that serves the memory: woken by the doorbell, at the latest every POLL_NS, and every
 * POLL_SLOW_NS once the program has settled.
 *
 *   heartbeat   so that CPU timers go on (they disarm once it is stale)
 *   arming      threads that wait for their perf events come first
 *   drain       full packets and ended threads to the files; every FLUSH_NS all others as well
 *   /proc       threads and children that nobody announced
 */
#include "tool/recorder/recorder_types.h"

#include <errno.h>
#include <string.h>

static uint64_t poll_ns(const struct recorder *recorder, uint64_t now)
{
	return now - recorder->start_ns < POLL_SETTLED_NS ? POLL_NS : POLL_SLOW_NS;
}

static void *serve(void *argument)
{
	struct recorder *recorder = argument;
	struct memory_header *header = recorder->memory.header;
	uint32_t seen = 0;

	while (!atomic_load(&recorder->service_stops)) {
		uint64_t now = now_ns();

		seen = memory_wait(&recorder->memory, seen, poll_ns(recorder, now));
		now = now_ns();
		atomic_store_explicit(&header->heartbeat_ns, now, memory_order_relaxed);
		pthread_mutex_lock(&recorder->lock);
		arming_serve(recorder);
		throttle_serve(recorder);
		if (now - recorder->flushed_ns >= FLUSH_NS) {
			recorder->flushed_ns = now;
			drain_flush(recorder);
			waits_flush(recorder);
		} else {
			drain_round(recorder);
		}
		memory_prefault_ahead(&recorder->memory, &recorder->ahead);
		if (now - recorder->polled_ns >= poll_ns(recorder, now)) {
			recorder->polled_ns = now;
			threads_poll(recorder);
		}
		pthread_mutex_unlock(&recorder->lock);
	}
	return NULL;
}

int service_start(struct recorder *recorder, struct errbuf *err)
{
	int code;

	atomic_store(&recorder->memory.header->heartbeat_ns, now_ns());
	recorder->polled_ns = recorder->flushed_ns = now_ns();
	/* Signals are blocked already: the thread inherits that, and only the signalfd has them. */
	code = pthread_create(&recorder->service, NULL, serve, recorder);
	if (code)
		return errbuf_set(err, -code, "Cannot start a thread: %s", strerror(code));
	recorder->service_runs = true;
	return 0;
}

void service_stop(struct recorder *recorder)
{
	if (!recorder->service_runs)
		return;
	atomic_store(&recorder->service_stops, true);
	memory_ring(&recorder->memory);
	pthread_join(recorder->service, NULL);
	recorder->service_runs = false;
}
