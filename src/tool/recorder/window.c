/* SPDX-License-Identifier: MIT */
/*
 * The window in which samples are wanted: --delay begins it, --duration ends it.
 *
 * What is counted is what happened in the window: for CPU timers the process's CPU clock at its
 * edges, for perf events each one's counter there. Counters are read while samples are wanted, at
 * both edges, so that an edge makes none look lost.
 *
 * When the window is over the recording stands, although the program runs on: everything is
 * written, and the manifest as if it ended there. It is written again when the program has ended.
 */
#include "tool/recorder/recorder_types.h"

#include <stdlib.h>

void window_begin(struct recorder *recorder)
{
	pthread_mutex_lock(&recorder->lock);
	atomic_store(&recorder->memory.header->recording, 1);
	recorder->window.begin_cpu_ns = threads_process_cpu_ns(recorder);
	arming_window_begins(recorder);
	throttle_window(recorder, false);
	waits_window(recorder);
	recorder->window.begin_ns = now_ns();
	recorder->window.begun = true;
	pthread_mutex_unlock(&recorder->lock);
}

void window_settle(struct recorder *recorder)
{
	const struct record_request *request = recorder->request;
	const struct window *window = &recorder->window;
	uint64_t end_ns = window->end_cpu_ns, cpu_ns = 0;

	if (!request->delay_ns && !window->ended)
		return; /* it is all of the program: the threads' own clocks say more */
	if (!window->ended)
		end_ns = threads_process_cpu_ns(recorder);
	if (window->begun && end_ns > window->begin_cpu_ns)
		cpu_ns = end_ns - window->begin_cpu_ns;
	for (size_t i = 0; i < request->nr_events; i++) {
		if (request->events[i].trigger == TRIGGER_CPU_TIMER)
			recorder->totals.event_count[i] = cpu_ns;
	}
}

/* Manifest and notes of a program that runs on; what is not yet settled is put back. */
static void publish_manifest(struct recorder *recorder)
{
	struct totals settled = recorder->totals;
	unsigned int nr_notes = recorder->nr_notes;
	bool whole = !recorder->disk_full && !recorder->definitions.dropped;
	struct errbuf err = {0};
	int code;

	threads_count_living(recorder);
	arming_count_living(recorder);
	throttle_count_living(recorder);
	window_settle(recorder);
	recorder->end_ns = recorder->window.end_ns;
	note_what_is_missing(recorder);
	code = manifest_write(recorder, whole, 0, &err);
	recorder->totals = settled;
	while (recorder->nr_notes > nr_notes)
		free(recorder->notes[--recorder->nr_notes]);
	if (code)
		note(recorder, "%s", err.text);
}

void window_end(struct recorder *recorder)
{
	pthread_mutex_lock(&recorder->lock);
	arming_window_ends(recorder);
	throttle_window(recorder, true);
	recorder->window.end_cpu_ns = threads_process_cpu_ns(recorder);
	recorder->window.end_ns = now_ns();
	recorder->window.ended = true;
	atomic_store(&recorder->memory.header->recording, 0);
	threads_list_root(recorder);
	meet_late_interpreter(recorder);
	waits_finish(recorder);
	drain_flush(recorder);
	drain_flush(recorder); /* what a thread wrote that filled a packet during the first */
	waits_flush(recorder);
	publish_manifest(recorder);
	pthread_mutex_unlock(&recorder->lock);
}
