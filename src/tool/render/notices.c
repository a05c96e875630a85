/* SPDX-License-Identifier: MIT */
/*
 * Order: damage, losses, samples that show less, what was never seen, what misleads, notes of the
 * recorder. A list of things of one sort is cut at LISTED_MAX: a fork bomb must not hide the rest.
 */
#include "tool/render/notices.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/render/quantity.h"
#include "tool/render/totals.h"

#define LISTED_MAX   8
#define EXAMPLES_MAX 3

/* The list under construction; failed: memory ran out, and the list is void. */
struct list {
	struct notices notices;
	size_t room;
	bool failed;
};

static void say(struct list *list, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct list *list, const char *format, ...)
{
	char *sentence = NULL;
	va_list args;

	if (!list->failed && list->notices.nr == list->room) {
		size_t room = list->room ? 2 * list->room : 16;
		char **grown = realloc(list->notices.sentences, room * sizeof(*grown));

		list->failed = !grown;
		if (grown) {
			list->notices.sentences = grown;
			list->room = room;
		}
	}
	if (list->failed)
		return;
	va_start(args, format);
	if (vasprintf(&sentence, format, args) < 0)
		list->failed = true;
	else
		list->notices.sentences[list->notices.nr++] = sentence;
	va_end(args);
}

/* "1 overflow was", "2 overflows were" */
static const char *plural(uint64_t number, const char *one, const char *many)
{
	return number == 1 ? one : many;
}

static const char *sentence_of(const char *key, const char *(*key_of)(unsigned int),
			       const char *(*sentence)(unsigned int))
{
	for (unsigned int i = 0; key_of(i); i++) {
		if (strcmp(key_of(i), key) == 0)
			return sentence(i);
	}
	return key; /* a reason of a newer version: its key is all that is known */
}

/* Sentences of others end with or without a full stop. */
static const char *stop_after(const char *sentence)
{
	size_t length = strlen(sentence);

	return length > 0 && strchr(".!?", sentence[length - 1]) ? "" : ".";
}

static void say_damage(struct list *list, const struct trace *trace)
{
	if (!trace->complete)
		say(list, "The recording is not complete: the recorder did not finish, so what "
			  "came last may be missing.");
	for (size_t i = 0; i < trace->nr_problems; i++)
		say(list, "%s%s", trace->problems[i], stop_after(trace->problems[i]));
}

static void say_losses(struct list *list, const struct trace *trace)
{
	uint64_t lost = lost_total(trace), all = lost + trace->nr_samples;

	if (lost > 0)
		say(list, "%s of %s %s (%s) left no sample.", quantity_exact(lost).text,
		    quantity_exact(all).text, plural(all, "overflow", "overflows"),
		    quantity_percent(lost, all).text);
	for (size_t i = 0; i < trace->nr_lost; i++)
		say(list, "%s lost: %s (%s).", quantity_exact(trace->lost[i].count).text,
		    sentence_of(trace->lost[i].key, loss_key, loss_sentence), trace->lost[i].key);
	for (size_t i = 0; i < trace->nr_degraded; i++)
		say(list, "%s %s only part of the stack: %s (%s).",
		    quantity_exact(trace->degraded[i].count).text,
		    plural(trace->degraded[i].count, "sample shows", "samples show"),
		    sentence_of(trace->degraded[i].key, degraded_key, degraded_sentence),
		    trace->degraded[i].key);
}

static bool is_same_reason(const struct trace_process *a, const struct trace_process *b)
{
	return a->reason && b->reason ? strcmp(a->reason, b->reason) == 0 : a->reason == b->reason;
}

/* "7, 8 /bin/true, ..": those that were not recorded for the reason of @first, from it on. */
static size_t list_processes(const struct trace *trace, size_t first, char *list, size_t room)
{
	size_t nr = 0, used = 0;

	for (size_t i = first; i < trace->nr_processes; i++) {
		const struct trace_process *process = &trace->processes[i];
		const char *command = process->command ? process->command : "";

		if (process->recorded || !is_same_reason(process, &trace->processes[first]))
			continue;
		nr++;
		if (nr > EXAMPLES_MAX + 1 || used >= room)
			continue;
		if (nr > EXAMPLES_MAX)
			used += (size_t)snprintf(list + used, room - used, ", ..");
		else
			used += (size_t)snprintf(list + used, room - used, "%s%u%s%s",
						 nr > 1 ? ", " : "", process->pid,
						 *command ? " " : "", command);
	}
	return nr;
}

/* One sentence a reason: a shell script starts many programs, all unseen for the same one. */
static void say_processes(struct list *list, const struct trace *trace)
{
	size_t said[LISTED_MAX], nr_said = 0;

	for (size_t i = 0; i < trace->nr_processes && nr_said < LISTED_MAX; i++) {
		const struct trace_process *process = &trace->processes[i];
		char examples[512];
		size_t nr, k = 0;

		while (k < nr_said && !is_same_reason(process, &trace->processes[said[k]]))
			k++;
		if (process->recorded || k < nr_said)
			continue;
		said[nr_said++] = i;
		nr = list_processes(trace, i, examples, sizeof(examples));
		say(list, "%s %s not recorded (%s)%s%s.", quantity_exact(nr).text,
		    plural(nr, "process was", "processes were"), examples,
		    process->reason ? ": " : "", process->reason ? process->reason : "");
	}
}

static void say_unseen(struct list *list, const struct trace *trace)
{
	size_t nr = 0;

	if (trace->unseen_cpu_ns > 0)
		say(list, "%s of CPU time went to threads that were not sampled.",
		    quantity_time(trace->unseen_cpu_ns).text);
	for (size_t i = 0; i < trace->nr_interpreters; i++) {
		const struct trace_interpreter *python = &trace->interpreters[i];

		if (!python->problem || nr++ >= LISTED_MAX)
			continue;
		say(list, "Python frames of process %u (%s, %s) are not seen: %s.", python->pid,
		    python->name ? python->name : "unknown interpreter",
		    python->path ? python->path : "path not known", python->problem);
	}
	if (nr > LISTED_MAX)
		say(list, "Python frames of %zu more processes are not seen.", nr - LISTED_MAX);
	say_processes(list, trace);
}

static void say_in_step(struct list *list, const struct trace *trace)
{
	struct in_step found[LISTED_MAX];
	size_t nr = in_step_find(trace, found, LISTED_MAX);

	for (size_t i = 0; i < nr && i < LISTED_MAX; i++) {
		const struct trace_thread *thread = &trace->threads[found[i].thread];

		say(list,
		    "Thread %u (%s) moves in step with the scheduler's tick: it wakes %.0f times a "
		    "second, and has %s samples where its CPU time makes %.0f likely. CPU-timer "
		    "samples of such a thread mislead; record with -e cpu-clock.",
		    thread->tid, thread->name ? thread->name : "", found[i].wakes_per_second,
		    quantity_exact(thread->samples).text, found[i].expected_samples);
	}
	if (nr > LISTED_MAX)
		say(list, "So do %zu more threads.", nr - LISTED_MAX);
}

int notices_collect(const struct trace *trace, struct notices *ret_notices)
{
	struct list list = {{NULL, 0}, 0, false};

	say_damage(&list, trace);
	say_losses(&list, trace);
	say_unseen(&list, trace);
	say_in_step(&list, trace);
	for (size_t i = 0; i < trace->nr_notes; i++)
		say(&list, "%s%s", trace->notes[i], stop_after(trace->notes[i]));
	if (list.failed) {
		notices_release(&list.notices);
		return -ENOMEM;
	}
	*ret_notices = list.notices;
	return 0;
}

void notices_release(struct notices *notices)
{
	for (size_t i = 0; i < notices->nr; i++)
		free(notices->sentences[i]);
	free(notices->sentences);
	memset(notices, 0, sizeof(*notices));
}
