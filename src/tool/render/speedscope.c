/* SPDX-License-Identifier: MIT */
/*
 * The file format of speedscope.app: one "sampled" profile per event and thread that has samples,
 * in the order in which they were taken, so that its time view shows time. Equal stacks that
 * follow each other become one entry. Frames are functions, shared by all profiles; index = the
 * trace's. Weights are nanoseconds or numbers of events.
 *
 * A profile is two lists, "samples" and "weights", that are written one after the other: so the
 * entries of all profiles are gathered first, sorted by profile and kept in their order.
 */
#include <errno.h>
#include <stdlib.h>

#include "tool/render/exporters.h"
#include "tool/render/json_parts.h"
#include "tool/render/stack_frames.h"
#include "tool/render/totals.h"

/* The entries: for each profile (event * nr_threads + thread) a run of sample indices. */
struct entries {
	uint32_t *samples; /* indices of trace->samples, sorted by profile, then time */
	size_t *starts;	   /* nr_profiles + 1 */
	size_t nr_profiles;
};

static size_t profile_of(const struct trace *trace, const struct trace_sample *sample)
{
	return sample->event * trace->nr_threads + sample->thread;
}

static void entries_release(struct entries *entries)
{
	free(entries->samples);
	free(entries->starts);
}

static int compare_times(const void *a, const void *b, void *user)
{
	const struct trace *trace = user;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	uint64_t left_ns = trace->samples[left].time_ns, right_ns = trace->samples[right].time_ns;

	if (left_ns != right_ns)
		return left_ns < right_ns ? -1 : 1;
	return (left > right) - (left < right);
}

static bool is_sorted(const struct trace *trace, const uint32_t *samples, size_t nr)
{
	for (size_t i = 1; i < nr; i++) {
		if (trace->samples[samples[i - 1]].time_ns > trace->samples[samples[i]].time_ns)
			return false;
	}
	return true;
}

/* A counting sort by profile; within one, streams are in order already but for rare cases. */
static int entries_gather(const struct trace *trace, struct entries *entries)
{
	size_t nr_profiles = trace->nr_events * trace->nr_threads, *next;

	entries->nr_profiles = nr_profiles;
	entries->samples = calloc(trace->nr_samples + 1, sizeof(*entries->samples));
	entries->starts = calloc(nr_profiles + 1, sizeof(*entries->starts));
	next = calloc(nr_profiles + 1, sizeof(*next));
	if (!entries->samples || !entries->starts || !next) {
		free(next);
		return -ENOMEM;
	}
	for (size_t i = 0; i < trace->nr_samples; i++)
		entries->starts[profile_of(trace, &trace->samples[i]) + 1]++;
	for (size_t i = 0; i < nr_profiles; i++)
		next[i + 1] = entries->starts[i + 1] += entries->starts[i];
	for (size_t i = 0; i < trace->nr_samples; i++)
		entries->samples[next[profile_of(trace, &trace->samples[i])]++] = (uint32_t)i;
	free(next);
	for (size_t i = 0; i < nr_profiles; i++) {
		uint32_t *run = entries->samples + entries->starts[i];
		size_t nr = entries->starts[i + 1] - entries->starts[i];

		if (!is_sorted(trace, run, nr))
			qsort_r(run, nr, sizeof(*run), compare_times, (void *)trace);
	}
	return 0;
}

/* The end of the run of equal stacks that begins at @at. */
static size_t run_end(const struct trace *trace, const uint32_t *samples, size_t at, size_t end)
{
	const struct trace_sample *first = &trace->samples[samples[at]];

	for (at++; at < end; at++) {
		const struct trace_sample *sample = &trace->samples[samples[at]];

		if (sample->native != first->native || sample->python != first->python ||
		    sample->state != first->state)
			break;
	}
	return at;
}

static int write_stacks(struct json_stream *json, const struct trace *trace,
			const struct entries *entries, size_t profile)
{
	size_t end = entries->starts[profile + 1];
	struct stack_frames frames = {0};
	int rc = 0;

	json_begin(json, "samples", '[');
	for (size_t i = entries->starts[profile]; i < end && rc == 0;
	     i = run_end(trace, entries->samples, i, end)) {
		const struct trace_sample *sample = &trace->samples[entries->samples[i]];

		rc = stack_frames_load(&frames, trace, sample->native, sample->python);
		rc = rc ? rc : stack_frames_mark(&frames, trace, sample->state);
		json_begin(json, NULL, '[');
		for (size_t k = 0; k < frames.nr && rc == 0; k++)
			json_number(json, NULL, trace->nodes[frames.nodes[k]].function);
		json_end(json, ']');
	}
	json_end(json, ']');
	stack_frames_release(&frames);
	return rc;
}

static void write_weights(struct json_stream *json, const struct trace *trace,
			  const struct entries *entries, size_t profile)
{
	size_t end = entries->starts[profile + 1], next;

	json_begin(json, "weights", '[');
	for (size_t i = entries->starts[profile]; i < end; i = next) {
		uint64_t weight = 0;

		next = run_end(trace, entries->samples, i, end);
		for (size_t k = i; k < next; k++)
			weight += trace->samples[entries->samples[k]].count;
		json_number(json, NULL, weight);
	}
	json_end(json, ']');
}

static int write_profile(struct json_stream *json, const struct trace *trace,
			 const struct entries *entries, size_t profile)
{
	const struct trace_event *event = &trace->events[profile / trace->nr_threads];
	const struct trace_thread *thread = &trace->threads[profile % trace->nr_threads];
	uint64_t sum = 0;
	char name[256];
	int rc;

	for (size_t i = entries->starts[profile]; i < entries->starts[profile + 1]; i++)
		sum += trace->samples[entries->samples[i]].count;
	snprintf(name, sizeof(name), "%s: %s (%u)", event->name, thread->name ? thread->name : "",
		 thread->tid);
	json_begin(json, NULL, '{');
	json_text(json, "type", "sampled");
	json_text(json, "name", name);
	json_text(json, "unit", unit_is_time(event) ? "nanoseconds" : "none");
	json_number(json, "startValue", 0);
	json_number(json, "endValue", sum);
	rc = write_stacks(json, trace, entries, profile);
	write_weights(json, trace, entries, profile);
	json_end(json, '}');
	return rc;
}

static void write_frames(struct json_stream *json, const struct trace *trace)
{
	json_begin(json, "shared", '{');
	json_begin(json, "frames", '[');
	for (size_t i = 0; i < trace->nr_functions; i++) {
		const struct trace_function *function = &trace->functions[i];

		json_begin(json, NULL, '{');
		json_text(json, "name", function->name);
		if (function->file)
			json_text(json, "file", function->file);
		if (function->line)
			json_number(json, "line", function->line);
		json_end(json, '}');
	}
	json_end(json, ']');
	json_end(json, '}');
}

static int write_document(const struct trace *trace, const struct entries *entries, FILE *out)
{
	struct json_stream json = {.out = out, .lines = 2};
	char *title = command_line(trace);
	int rc = title ? 0 : -ENOMEM;

	json_begin(&json, NULL, '{');
	json_text(&json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_text(&json, "exporter", "pathprof " PATHPROF_VERSION);
	json_text(&json, "name", title);
	json_number(&json, "activeProfileIndex", 0);
	write_frames(&json, trace);
	json_begin(&json, "profiles", '[');
	for (size_t i = 0; i < entries->nr_profiles && rc == 0; i++) {
		if (entries->starts[i] < entries->starts[i + 1])
			rc = write_profile(&json, trace, entries, i);
	}
	json_end(&json, ']');
	json_end(&json, '}');
	putc('\n', out);
	free(title);
	return rc;
}

static int speedscope_write(const struct trace *trace, FILE *out, struct errbuf *err)
{
	struct entries entries = {0};
	int rc = entries_gather(trace, &entries);

	if (rc == 0)
		rc = write_document(trace, &entries, out);
	entries_release(&entries);
	return rc < 0 ? errbuf_set(err, rc, "Cannot write the profiles: out of memory") : 0;
}

const struct exporter speedscope_exporter = {
	"speedscope",
	"JSON for speedscope.app: flame charts over time, per thread",
	true,
	speedscope_write,
};
