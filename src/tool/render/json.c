/* SPDX-License-Identifier: MIT */
/*
 * `report --json`: the document of pathprof-report(1). Its keys are stable; what this file has
 * beyond them ("notices", "complete", "interpreters", ...) came later, as more may.
 */
#include <errno.h>
#include <stdlib.h>

#include "tool/render/json_parts.h"
#include "tool/render/json_stream.h"
#include "tool/render/render.h"
#include "tool/render/totals.h"

static void write_counts(struct json_stream *json, const struct trace_count *counts, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		json_number(json, counts[i].key, counts[i].count);
}

static void write_losses(struct json_stream *json, const struct trace *trace)
{
	json_number(json, "samples", trace->nr_samples - trace->nr_waits);
	json_begin(json, "lost", '{');
	json_number(json, "total", lost_total(trace));
	write_counts(json, trace->lost, trace->nr_lost);
	json_end(json, '}');
	json_begin(json, "degraded", '{');
	write_counts(json, trace->degraded, trace->nr_degraded);
	json_end(json, '}');
}

/* The share is of the CPU time of the threads that were recorded; null where that is not known. */
static void write_overhead(struct json_stream *json, const struct trace *trace)
{
	uint64_t cpu_ns = 0;

	for (size_t i = 0; i < trace->nr_threads; i++)
		cpu_ns += trace->threads[i].cpu_ns;
	json_begin(json, "overhead", '{');
	json_number(json, "handler_ns", trace->handler_ns);
	json_number(json, "recorder_ns", trace->recorder_ns);
	if (cpu_ns > 0)
		json_share(json, "share", (double)trace->handler_ns / (double)cpu_ns);
	else
		json_text(json, "share", NULL);
	json_end(json, '}');
}

static void write_events(struct json_stream *json, const struct trace *trace,
			 const struct totals *totals)
{
	json_begin(json, "events", '[');
	for (uint32_t i = 0; i < trace->nr_events; i++) {
		const struct trace_event *event = &trace->events[i];
		struct total total = totals_of(totals, i, PROFILE_ALL);

		json_begin(json, NULL, '{');
		json_text(json, "name", event->name);
		json_text(json, "unit", event->unit);
		json_number(json, "period", event->period);
		json_number(json, "samples", total.samples);
		json_number(json, "count", event->count ? event->count : total.count);
		json_bool(json, "count_is_exact", event->count != 0);
		json_text(json, "trigger", event->trigger);
		json_bool(json, "user_only", event->user_only);
		json_number(json, "jitter", event->jitter);
		json_end(json, '}');
	}
	json_end(json, ']');
}

/* A process's samples: the sum over its threads, by sorted pid. */
struct pid_samples {
	uint32_t pid;
	uint64_t samples;
};

static int compare_pids(const void *a, const void *b)
{
	const struct pid_samples *left = a, *right = b;

	return (left->pid > right->pid) - (left->pid < right->pid);
}

static struct pid_samples *samples_by_pid(const struct trace *trace, const struct totals *totals,
					  size_t *ret_nr)
{
	struct pid_samples *by_pid = calloc(trace->nr_threads + 1, sizeof(*by_pid));
	size_t nr = 0;

	if (!by_pid)
		return NULL;
	for (uint32_t i = 0; i < trace->nr_threads; i++) {
		by_pid[i].pid = trace->threads[i].pid;
		by_pid[i].samples = totals_of(totals, PROFILE_ALL, i).samples;
	}
	qsort(by_pid, trace->nr_threads, sizeof(*by_pid), compare_pids);
	for (size_t i = 0; i < trace->nr_threads; i++) {
		if (nr > 0 && by_pid[nr - 1].pid == by_pid[i].pid)
			by_pid[nr - 1].samples += by_pid[i].samples;
		else
			by_pid[nr++] = by_pid[i];
	}
	*ret_nr = nr;
	return by_pid;
}

static int write_processes(struct json_stream *json, const struct trace *trace,
			   const struct totals *totals)
{
	size_t nr = 0;
	struct pid_samples *by_pid = samples_by_pid(trace, totals, &nr);

	if (!by_pid)
		return -ENOMEM;
	json_begin(json, "processes", '[');
	for (size_t i = 0; i < trace->nr_processes; i++) {
		const struct trace_process *process = &trace->processes[i];
		struct pid_samples key = {process->pid, 0}, *found;

		found = bsearch(&key, by_pid, nr, sizeof(*by_pid), compare_pids);
		json_begin(json, NULL, '{');
		json_number(json, "pid", process->pid);
		json_number(json, "ppid", process->ppid);
		json_text(json, "command", process->command);
		json_number(json, "samples", found ? found->samples : 0);
		json_bool(json, "recorded", process->recorded);
		json_text(json, "reason", process->reason);
		json_end(json, '}');
	}
	json_end(json, ']');
	free(by_pid);
	return 0;
}

/* What --wall found, exact but for the stacks; only of such recordings. */
static void write_wall(struct json_stream *json, const struct trace *trace)
{
	const struct trace_wall *wall = &trace->wall;

	if (!wall->period_ns)
		return;
	json_begin(json, "waits", '{');
	json_text(json, "event", trace->events[wall->event].name);
	json_number(json, "period_ns", wall->period_ns);
	json_number(json, "waits", wall->waits);
	json_number(json, "waited_ns", wall->waited_ns);
	json_number(json, "seen", wall->seen);
	json_number(json, "seen_ns", wall->seen_ns);
	json_number(json, "rejected", wall->rejected);
	json_end(json, '}');
}

/* Only where the recording tells states. */
static void write_states(struct json_stream *json, const struct trace *trace,
			 const struct totals *totals)
{
	if (!trace->nr_waits && !trace->knows_lock)
		return;
	json_begin(json, "states", '[');
	for (uint32_t i = 0; i < trace->nr_events; i++) {
		for (unsigned int state = 0; state < NR_SAMPLE_STATES; state++) {
			struct total total = totals_of_states(totals, i, PROFILE_ALL, 1u << state);

			if (!total.samples)
				continue;
			json_begin(json, NULL, '{');
			json_text(json, "event", trace->events[i].name);
			json_text(json, "state", state_key(state));
			json_number(json, "samples", total.samples);
			json_number(json, "count", total.count);
			json_end(json, '}');
		}
	}
	json_end(json, ']');
}

/* By state, what fell on a thread of the event that waits count as. */
static void write_thread_waits(struct json_stream *json, const struct trace *trace,
			       const struct totals *totals, uint32_t thread)
{
	if (!trace->wall.period_ns)
		return;
	json_number(json, "waits", trace->threads[thread].waits);
	json_number(json, "waited_ns", trace->threads[thread].waited_ns);
	json_begin(json, "states", '{');
	for (unsigned int state = 0; state < NR_SAMPLE_STATES; state++) {
		struct total total =
			totals_of_states(totals, trace->wall.event, thread, 1u << state);

		if (total.samples)
			json_number(json, state_key(state), total.count);
	}
	json_end(json, '}');
}

static void write_threads(struct json_stream *json, const struct trace *trace,
			  const struct totals *totals)
{
	json_begin(json, "threads", '[');
	for (uint32_t i = 0; i < trace->nr_threads; i++) {
		const struct trace_thread *thread = &trace->threads[i];

		json_begin(json, NULL, '{');
		json_number(json, "pid", thread->pid);
		json_number(json, "tid", thread->tid);
		json_text(json, "name", thread->name);
		json_number(json, "samples", totals_of(totals, PROFILE_ALL, i).samples);
		write_thread_waits(json, trace, totals, i);
		json_end(json, '}');
	}
	json_end(json, ']');
}

static void write_interpreters(struct json_stream *json, const struct trace *trace)
{
	json_begin(json, "interpreters", '[');
	for (size_t i = 0; i < trace->nr_interpreters; i++) {
		const struct trace_interpreter *interpreter = &trace->interpreters[i];

		json_begin(json, NULL, '{');
		json_number(json, "pid", interpreter->pid);
		json_text(json, "name", interpreter->name);
		json_text(json, "path", interpreter->path);
		json_text(json, "problem", interpreter->problem);
		json_end(json, '}');
	}
	json_end(json, ']');
}

static void write_row(struct json_stream *json, const struct trace *trace,
		      const struct profile_row *row, enum profile_by by, const char *state)
{
	const struct trace_function *function = &trace->functions[row->function];

	json_begin(json, NULL, '{');
	json_text(json, "event", trace->events[row->event].name);
	if (by == PROFILE_BY_FUNCTION)
		json_text(json, "name", function->name);
	json_text(json, "file", function->file);
	json_line(json, "line", by == PROFILE_BY_FUNCTION ? function->line : row->line);
	if (by == PROFILE_BY_LINE)
		json_text(json, "function", function->name);
	json_text(json, "kind", frame_kind_name(function->kind));
	if (state)
		json_text(json, "state", state);
	json_number(json, "self", row->cost.self);
	json_number(json, "total", row->cost.total);
	json_number(json, "self_count", row->cost.self_count);
	json_number(json, "total_count", row->cost.total_count);
	json_end(json, '}');
}

/* A document under way. */
struct document {
	struct json_stream *json;
	const struct trace *trace;
	struct json_options options;
};

static int write_rows(const struct document *document, enum profile_by by, uint32_t states,
		      const char *state)
{
	struct profile_filter filter = {PROFILE_ALL, PROFILE_ALL, states, false};
	struct profile profile;
	int rc = profile_flat(document->trace, filter, by, false, &profile);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < profile.nr_rows; i++)
		write_row(document->json, document->trace, &profile.rows[i], by, state);
	profile_release(&profile);
	return 0;
}

static int write_profile(const struct document *document, enum profile_by by, const char *key)
{
	uint32_t states = document->options.states;
	int rc = 0;

	json_begin(document->json, key, '[');
	if (!document->options.split_states)
		rc = write_rows(document, by, states, NULL);
	for (unsigned int state = 0; state < NR_SAMPLE_STATES && !rc; state++) {
		if (document->options.split_states && (!states || states >> state & 1))
			rc = write_rows(document, by, 1u << state, state_key(state));
	}
	json_end(document->json, ']');
	return rc;
}

static int write_document(const struct document *document, const struct totals *totals)
{
	struct json_stream *json = document->json;
	const struct trace *trace = document->trace;
	int rc;

	json_begin(json, NULL, '{');
	json_number(json, "version", 1);
	json_recording(json, trace);
	write_losses(json, trace);
	write_overhead(json, trace);
	json_number(json, "unseen_cpu_ns", trace->unseen_cpu_ns);
	rc = json_notices(json, trace);
	if (rc < 0)
		return rc;
	write_interpreters(json, trace);
	write_events(json, trace, totals);
	rc = write_processes(json, trace, totals);
	if (rc < 0)
		return rc;
	write_threads(json, trace, totals);
	write_wall(json, trace);
	write_states(json, trace, totals);
	rc = write_profile(document, PROFILE_BY_FUNCTION, "functions");
	if (rc == 0)
		rc = write_profile(document, PROFILE_BY_LINE, "lines");
	json_end(json, '}');
	putc('\n', json->out);
	return rc;
}

int json_write_states(const struct trace *trace, const struct json_options *options, FILE *out,
		      struct errbuf *err)
{
	struct json_stream json = {.out = out, .lines = 2};
	struct document document = {.json = &json, .trace = trace, .options = *options};
	struct totals totals;
	int rc = totals_collect(trace, &totals);

	if (rc == 0) {
		rc = write_document(&document, &totals);
		totals_release(&totals);
	}
	return rc < 0 ? errbuf_set(err, rc, "Cannot write the report: out of memory") : 0;
}

int json_write(const struct trace *trace, FILE *out, struct errbuf *err)
{
	struct json_options everything = {0};

	return json_write_states(trace, &everything, out, err);
}
