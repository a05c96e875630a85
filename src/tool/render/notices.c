/* SPDX-License-Identifier: MIT */
/*
 * Order: the recorder's headlines (kernel time that is not included, another event in place of the
 * one that was named), damage, losses, samples that show less, what was never seen, what misleads,
 * notes of the recorder. A list of things of one sort is cut at LISTED_MAX: a fork bomb must not
 * hide the rest. One fact is one sentence, however many parts of the recording hold it.
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
#define COMPARED_MAX 64 /* interpreters: the recorder keeps 16 */

#define MERGED_SHARE_DIVISOR 10 /* merged losses above this part of all are explained */

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

static const char *path_of(const struct trace_interpreter *python)
{
	return python->path ? python->path : "";
}

static uint64_t count_of(const struct trace_count *counts, size_t nr, const char *key)
{
	for (size_t i = 0; i < nr; i++) {
		if (strcmp(counts[i].key, key) == 0)
			return counts[i].count;
	}
	return 0;
}

static void say_headlines(struct list *list, const struct trace *trace)
{
	for (size_t i = 0; i < trace->nr_headlines; i++)
		say(list, "%s%s", trace->headlines[i], stop_after(trace->headlines[i]));
}

static void say_damage(struct list *list, const struct trace *trace)
{
	if (trace->live)
		say(list, "It is being recorded: only what was written by now is here, which lags "
			  "some seconds behind. What was lost is known at its end.");
	else if (!trace->complete && trace->ended)
		say(list, "The recording is not complete: part of it could not be written.");
	else if (!trace->complete)
		say(list,
		    "The recording is not complete: it is still being recorded, or its "
		    "recorder was killed. What came last, and what was lost, may be missing.");
	for (size_t i = 0; i < trace->nr_problems; i++)
		say(list, "%s%s", trace->problems[i], stop_after(trace->problems[i]));
}

/* What a loss is, and where the reader can do something about it: what. */
static void say_loss(struct list *list, const struct trace *trace, const struct trace_count *lost,
		     uint64_t all)
{
	bool bursts = strcmp(lost->key, loss_key(LOSS_MERGED)) == 0 && trace->trigger &&
		      strcmp(trace->trigger, "cpu-timer") == 0 &&
		      lost->count > all / MERGED_SHARE_DIVISOR;

	say(list, "%s lost: %s (%s).%s", quantity_exact(lost->count).text,
	    sentence_of(lost->key, loss_key, loss_sentence), lost->key,
	    bursts ? " CPU timers are looked at by the scheduler's tick only, so short bursts of "
		     "work merge; -e cpu-clock sees them, where perf events are allowed: pathprof "
		     "doctor."
		   : "");
}

static void say_losses(struct list *list, const struct trace *trace)
{
	uint64_t lost = lost_total(trace), all = lost + trace->nr_samples - trace->nr_waits;

	if (lost > 0)
		say(list, "%s of %s %s (%s) left no sample.", quantity_exact(lost).text,
		    quantity_exact(all).text, plural(all, "overflow", "overflows"),
		    quantity_percent(lost, all).text);
	for (size_t i = 0; i < trace->nr_lost; i++)
		say_loss(list, trace, &trace->lost[i], all);
}

/* Is it the first of its process, program and problem? A program may replace itself by itself. */
static bool is_new_problem(const struct trace *trace, size_t index)
{
	const struct trace_interpreter *python = &trace->interpreters[index];

	for (size_t i = 0; i < index && i < COMPARED_MAX; i++) {
		const struct trace_interpreter *other = &trace->interpreters[i];

		if (other->problem && other->pid == python->pid &&
		    strcmp(other->problem, python->problem) == 0 &&
		    strcmp(path_of(other), path_of(python)) == 0)
			return false;
	}
	return true;
}

/*
 * The samples of the one interpreter that is not read: said with it. 0 where there are several,
 * whose samples are not told apart, or none.
 */
static uint64_t unread_samples(const struct trace *trace)
{
	size_t nr = 0;

	for (size_t i = 0; i < trace->nr_interpreters && nr <= 1; i++)
		nr += trace->interpreters[i].problem && is_new_problem(trace, i);
	if (nr != 1)
		return 0;
	return count_of(trace->degraded, trace->nr_degraded, degraded_key(DEGRADED_NO_INTERPRETER));
}

static void say_degraded(struct list *list, const struct trace *trace)
{
	bool with_interpreter = unread_samples(trace) > 0;

	for (size_t i = 0; i < trace->nr_degraded; i++) {
		const struct trace_count *degraded = &trace->degraded[i];

		if (with_interpreter &&
		    strcmp(degraded->key, degraded_key(DEGRADED_NO_INTERPRETER)) == 0)
			continue;
		if (strcmp(degraded->key, degraded_key(DEGRADED_JIT_POSITION)) == 0) {
			say(list,
			    "%s %s run by the JIT: the innermost line may be an earlier one "
			    "of the same function (%s).",
			    quantity_exact(degraded->count).text,
			    plural(degraded->count, "sample was", "samples were"), degraded->key);
			continue;
		}
		say(list, "%s %s only part of the stack: %s (%s).",
		    quantity_exact(degraded->count).text,
		    plural(degraded->count, "sample shows", "samples show"),
		    sentence_of(degraded->key, degraded_key, degraded_sentence), degraded->key);
	}
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

static void say_interpreters(struct list *list, const struct trace *trace)
{
	uint64_t samples = unread_samples(trace);
	char without[64] = "";
	size_t nr = 0;

	if (samples > 0)
		snprintf(without, sizeof(without), ", in %s %s (%s)", quantity_exact(samples).text,
			 plural(samples, "sample", "samples"),
			 degraded_key(DEGRADED_NO_INTERPRETER));
	for (size_t i = 0; i < trace->nr_interpreters; i++) {
		const struct trace_interpreter *python = &trace->interpreters[i];

		if (!python->problem || !is_new_problem(trace, i) || nr++ >= LISTED_MAX)
			continue;
		say(list, "Python frames of process %u (%s, %s) are not seen%s: %s%s", python->pid,
		    python->name ? python->name : "unknown interpreter",
		    *path_of(python) ? path_of(python) : "path not known", without, python->problem,
		    stop_after(python->problem));
	}
	if (nr > LISTED_MAX)
		say(list, "Python frames of %zu more interpreters are not seen.", nr - LISTED_MAX);
}

static void say_unseen(struct list *list, const struct trace *trace)
{
	if (trace->only_locked && trace->has_no_lock)
		say(list,
		    "--gil found no interpreter lock, since this is a free-threaded build: samples "
		    "of "
		    "threads that ran the interpreter were kept, and %s of others %s left out.",
		    quantity_exact(trace->left_out).text, plural(trace->left_out, "was", "were"));
	else if (trace->only_locked)
		say(list,
		    "Only samples of threads that held the interpreter lock were kept (--gil): %s "
		    "without it %s left out.",
		    quantity_exact(trace->left_out).text, plural(trace->left_out, "was", "were"));
	if (trace->unseen_cpu_ns > 0)
		say(list, "%s " UNSEEN_CPU_SENTENCE ".", quantity_time(trace->unseen_cpu_ns).text);
	say_interpreters(list, trace);
	say_processes(list, trace);
}

/* The recorder notes an interpreter that it cannot read, for who sees its summary alone. */
static bool is_of_interpreter(const struct trace *trace, const char *note)
{
	for (size_t i = 0; i < trace->nr_interpreters && i < COMPARED_MAX; i++) {
		const struct trace_interpreter *python = &trace->interpreters[i];

		if (python->problem && *path_of(python) && strstr(note, path_of(python)) &&
		    strstr(note, python->problem))
			return true;
	}
	return false;
}

static void say_notes(struct list *list, const struct trace *trace)
{
	for (size_t i = 0; i < trace->nr_notes; i++) {
		if (!is_of_interpreter(trace, trace->notes[i]))
			say(list, "%s%s", trace->notes[i], stop_after(trace->notes[i]));
	}
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
		    quantity_exact(found[i].samples).text, found[i].expected_samples);
	}
	if (nr > LISTED_MAX)
		say(list, "So do %zu more threads.", nr - LISTED_MAX);
}

int notices_collect(const struct trace *trace, struct notices *ret_notices)
{
	struct list list = {{NULL, 0}, 0, false};

	say_headlines(&list, trace);
	say_damage(&list, trace);
	say_losses(&list, trace);
	say_degraded(&list, trace);
	say_unseen(&list, trace);
	say_in_step(&list, trace);
	say_notes(&list, trace);
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
