/* SPDX-License-Identifier: MIT */
/* The closing summary: what was recorded, what was lost, what could not be seen, what is next. */
#include "tool/recorder/recorder_types.h"

#include <stdarg.h>
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

static void detail(struct record_result *result, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void detail(struct record_result *result, const char *format, ...)
{
	va_list arguments;

	if (result->nr_details == DETAILS_MAX)
		return;
	va_start(arguments, format);
	if (vasprintf(&result->details[result->nr_details], format, arguments) >= 0)
		result->nr_details++;
	va_end(arguments);
}

void summary_details(const struct recorder *recorder, struct record_result *result)
{
	const struct record_request *request = recorder->request;
	char took[EVENT_TIME_BYTES], spent[EVENT_TIME_BYTES];

	detail(result, "command   %s, process %d, exit status %d, after %s", request->command[0],
	       recorder->root_pid, recorder->exit_status,
	       event_time_text(recorder->end_ns - recorder->start_ns, took));
	detail(result, "agent     %s", recorder->agent);
	for (unsigned int i = 0; i < recorder->nr_interpreters; i++)
		detail(result, "python    %s, %s, process %u", recorder->interpreters[i].name,
		       recorder->interpreters[i].path, recorder->interpreters[i].pid);
	detail(result, "memory    %llu MiB at most, %u slots, %u packets",
	       (unsigned long long)(request->memory_bytes >> 20),
	       recorder->memory.header->sizes.nr_slots, recorder->memory.header->sizes.nr_packets);
	detail(result, "stacks    %llu nodes of %llu functions",
	       (unsigned long long)recorder->definitions.nr_nodes,
	       (unsigned long long)recorder->definitions.nr_codes);
	detail(result, "handler   %s in the program, all samples together",
	       event_time_text(recorder->totals.handler_ns, spent));
	detail(result, "seed      %llu", (unsigned long long)recorder->seed);
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
	for (unsigned int i = 0; verbose && i < result->nr_details; i++)
		fprintf(out, "  %s\n", result->details[i]);
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
