/* SPDX-License-Identifier: MIT */
/* The closing summary: what was recorded, what was lost, what could not be seen, what is next. */
#include "tool/recorder/recorder.h"

#include <string.h>

static void put_size(FILE *out, uint64_t bytes)
{
	if (bytes < 10000)
		fprintf(out, "%llu bytes", (unsigned long long)bytes);
	else if (bytes < 10000000)
		fprintf(out, "%.0f kB", (double)bytes / 1e3);
	else
		fprintf(out, "%.1f MB", (double)bytes / 1e6);
}

static void put_period(FILE *out, const struct event_choice *event)
{
	char text[EVENT_TIME_BYTES];

	if (strcmp(event->unit, "ns"))
		fprintf(out, "one sample in %llu", (unsigned long long)event->period);
	else
		fprintf(out, "every %s", event_time_text(event->period, text));
	if (event->jitter)
		fprintf(out, " on average");
}

static const char *plural(uint64_t number)
{
	return number == 1 ? "" : "s";
}

static void put_events(FILE *out, const struct record_request *request)
{
	for (size_t i = 0; i < request->nr_events; i++) {
		const struct event_choice *event = &request->events[i];

		fprintf(out, "  event     %s, ", event->name);
		put_period(out, event);
		fprintf(out, ", by %s\n", event_trigger_name(event->trigger));
	}
}

static void put_losses(FILE *out, const struct record_result *result)
{
	for (unsigned int i = 0; i < NR_LOSS_REASONS; i++) {
		if (result->lost[i])
			fprintf(out, "  lost      %llu %s: %s\n",
				(unsigned long long)result->lost[i], loss_key(i), loss_sentence(i));
	}
	for (unsigned int i = 0; i < NR_DEGRADED_REASONS; i++) {
		if (result->degraded[i])
			fprintf(out, "  degraded  %llu %s: %s\n",
				(unsigned long long)result->degraded[i], degraded_key(i),
				degraded_sentence(i));
	}
}

void summary_write(FILE *out, const struct record_request *request,
		   const struct record_result *result, bool verbose)
{
	bool usual = !strcmp(request->directory, RECORDING_DIRECTORY);

	fprintf(out, "pathprof: %llu sample%s of %llu thread%s, ",
		(unsigned long long)result->samples, plural(result->samples),
		(unsigned long long)result->nr_threads, plural(result->nr_threads));
	put_size(out, result->bytes);
	fprintf(out, " in %s\n", verbose ? result->directory : request->directory);
	put_events(out, request);
	put_losses(out, result);
	if (result->nr_children)
		fprintf(out, "  children  %llu process%s that the program started: not recorded\n",
			(unsigned long long)result->nr_children,
			result->nr_children == 1 ? "" : "es");
	if (result->unseen_cpu_ns)
		fprintf(out, "  unseen    %.3f s " UNSEEN_CPU_SENTENCE "\n",
			(double)result->unseen_cpu_ns / 1e9);
	for (unsigned int i = 0; i < result->nr_notes; i++)
		fprintf(out, "  note      %s\n", result->notes[i]);
	if (!result->complete)
		fprintf(out, "  note      The recording is not complete\n");
	fprintf(out, "  next      pathprof report%s%s\n", usual ? "" : " ",
		usual ? "" : request->directory);
}
