/* SPDX-License-Identifier: MIT */
/*
 * manifest.json: what the recording is, in the keys that ARCHITECTURE.md lists.
 *
 * Written at the start with "complete": false, and replaced by rename at the end, so that
 * whatever happens in between leaves a readable one. "version" and "pathprof" come first: by them
 * directory.c knows a recording.
 */
#include "tool/recorder/recorder_types.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#define MANIFEST_VERSION 1

/* Any bytes as a JSON string: what is no UTF-8 is shown as \xNN. */
static json_t *text(const char *bytes)
{
	json_t *string = json_string(bytes);
	char *shown, *at;
	size_t room;

	if (string)
		return string;
	room = 4 * strlen(bytes) + 1;
	at = shown = malloc(room);
	if (!shown)
		return json_null();
	for (; *bytes; bytes++) {
		if ((unsigned char)*bytes < 0x80)
			*at++ = *bytes;
		else
			at += snprintf(at, room - (size_t)(at - shown), "\\x%02x",
				       (unsigned char)*bytes);
	}
	*at = 0;
	string = json_string(shown);
	free(shown);
	return string ? string : json_null();
}

static json_t *command(char *const *words)
{
	json_t *list = json_array();

	for (; *words; words++)
		json_array_append_new(list, text(*words));
	return list;
}

/* "model name" of the first CPU; arm64 kernels tell none. */
static json_t *cpu_model(void)
{
	char head[2048], *at, *end;
	int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return json_null();
	length = read(fd, head, sizeof(head) - 1);
	close(fd);
	head[length > 0 ? length : 0] = 0;
	at = strstr(head, "model name");
	at = at ? strchr(at, ':') : NULL;
	end = at ? strchr(at, '\n') : NULL;
	if (!end)
		return json_null();
	*end = 0;
	return text(at + 1 + strspn(at + 1, " \t"));
}

static void put_machine(json_t *root, const struct recorder *recorder)
{
	char here[PATH_MAX];
	struct utsname system;

	json_object_set_new(root, "command", command(recorder->request->command));
	json_object_set_new(root, "working_directory",
			    getcwd(here, sizeof(here)) ? text(here) : json_null());
	if (!uname(&system)) {
		json_object_set_new(root, "host", text(system.nodename));
		json_object_set_new(root, "kernel", text(system.release));
	}
	json_object_set_new(root, "cpu_model", cpu_model());
	json_object_set_new(root, "cpus", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
}

static void put_clock(json_t *root, const struct recorder *recorder)
{
	char boot_id[37] = "";
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (read(fd, boot_id, 36) != 36)
			boot_id[0] = 0;
		close(fd);
	}
	json_object_set_new(root, "clock",
			    json_pack("{s:s, s:s, s:I}", "name", "monotonic", "uuid", boot_id,
				      "offset_ns", (json_int_t)recorder->clock_offset_ns));
	json_object_set_new(root, "start_ns", json_integer((json_int_t)recorder->start_ns));
	json_object_set_new(root, "end_ns", json_integer((json_int_t)recorder->end_ns));
	json_object_set_new(root, "tick_ns", json_integer(recorder->tick_ns));
	json_object_set_new(root, "seed", json_integer((json_int_t)recorder->seed));
}

/* What happened of an event; of wall time, what the threads ran and what they waited. */
static uint64_t count_of(const struct recorder *recorder, size_t event)
{
	const struct record_request *request = recorder->request;
	uint64_t count = recorder->totals.event_count[event];

	return request->wall_ns && request->wall_event == event ? count + recorder->totals.waited_ns
								: count;
}

static json_t *wall(const struct recorder *recorder)
{
	const struct totals *totals = &recorder->totals;

	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "event",
			 recorder->request->events[recorder->request->wall_event].name, "period_ns",
			 (json_int_t)recorder->request->wall_ns, "waits", (json_int_t)totals->waits,
			 "waited_ns", (json_int_t)totals->waited_ns, "seen",
			 (json_int_t)totals->waits_seen, "seen_ns",
			 (json_int_t)totals->waits_seen_ns, "rejected",
			 (json_int_t)totals->waits_rejected);
}

/* --delay and --duration, and what they came to. */
static json_t *window(const struct recorder *recorder)
{
	const struct window *window = &recorder->window;
	uint64_t begin_ns = window->begun ? window->begin_ns : 0;
	uint64_t end_ns = window->ended ? window->end_ns : recorder->end_ns;

	return json_pack("{s:I, s:I, s:I, s:I}", "delay_ns",
			 (json_int_t)recorder->request->delay_ns, "duration_ns",
			 (json_int_t)recorder->request->duration_ns, "begin_ns",
			 (json_int_t)begin_ns, "end_ns", (json_int_t)(begin_ns ? end_ns : 0));
}

static json_t *events(const struct recorder *recorder)
{
	json_t *list = json_array();

	for (size_t i = 0; i < recorder->request->nr_events; i++) {
		const struct event_choice *event = &recorder->request->events[i];

		json_t *object = json_pack(
			"{s:o, s:s, s:I, s:I, s:s, s:b}", "name", text(event->name), "unit",
			event->unit, "period", (json_int_t)event->period, "count",
			(json_int_t)count_of(recorder, i), "trigger",
			event_trigger_name(event->trigger), "user_only", event->user_only);

		if (event->jitter)
			json_object_set_new(object, "jitter",
					    json_integer((json_int_t)event->jitter));
		json_array_append_new(list, object);
	}
	return list;
}

static json_t *interpreters(const struct recorder *recorder)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < recorder->nr_interpreters; i++) {
		const struct interpreter *it = &recorder->interpreters[i];

		json_array_append_new(
			list, json_pack("{s:I, s:o, s:o, s:o, s:b}", "pid", (json_int_t)it->pid,
					"name", text(it->name), "path", text(it->path), "problem",
					it->problem[0] ? text(it->problem) : json_null(),
					"has_no_lock", it->has_no_lock));
	}
	return list;
}

static json_t *counts(const uint64_t *numbers, unsigned int nr, const char *(*key)(unsigned int))
{
	json_t *object = json_object();

	for (unsigned int i = 0; i < nr; i++) {
		if (numbers[i])
			json_object_set_new(object, key(i), json_integer((json_int_t)numbers[i]));
	}
	return object;
}

static uint64_t own_cpu_ns(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage))
		return 0;
	return 1000 * (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) +
	       1000000000 * (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec);
}

static json_t *notes(const struct recorder *recorder, unsigned int from, unsigned int to)
{
	json_t *list = json_array();

	for (unsigned int i = from; i < to; i++)
		json_array_append_new(list, text(recorder->notes[i]));
	return list;
}

static json_t *manifest(const struct recorder *recorder, bool complete, uint64_t unseen_cpu_ns)
{
	const struct totals *totals = &recorder->totals;
	json_t *root = json_object();

	json_object_set_new(root, "version", json_integer(MANIFEST_VERSION));
	json_object_set_new(root, "pathprof", json_string(PATHPROF_VERSION));
	json_object_set_new(root, "complete", json_boolean(complete));
	put_machine(root, recorder);
	put_clock(root, recorder);
	json_object_set_new(root, "trigger",
			    json_string(event_trigger_name(recorder->request->events[0].trigger)));
	json_object_set_new(root, "root_pid", json_integer(recorder->root_pid));
	json_object_set_new(root, "exit_status", json_integer(recorder->exit_status));
	json_object_set_new(root, "events", events(recorder));
	if (recorder->request->delay_ns || recorder->request->duration_ns)
		json_object_set_new(root, "window", window(recorder));
	if (recorder->request->only_locked)
		json_object_set_new(root, "left_out", json_integer((json_int_t)totals->left_out));
	if (recorder->request->wall_ns)
		json_object_set_new(root, "wall", wall(recorder));
	json_object_set_new(root, "interpreters", interpreters(recorder));
	json_object_set_new(root, "lost", counts(totals->lost, NR_LOSS_REASONS, loss_key));
	json_object_set_new(root, "degraded",
			    counts(totals->degraded, NR_DEGRADED_REASONS, degraded_key));
	json_object_set_new(root, "overhead",
			    json_pack("{s:I, s:I}", "handler_ns", (json_int_t)totals->handler_ns,
				      "recorder_ns", (json_int_t)own_cpu_ns()));
	json_object_set_new(root, "unseen_cpu_ns", json_integer((json_int_t)unseen_cpu_ns));
	json_object_set_new(root, "headlines", notes(recorder, 0, recorder->nr_headlines));
	json_object_set_new(root, "notes",
			    notes(recorder, recorder->nr_headlines, recorder->nr_notes));
	return root;
}

static int write_text(int directory_fd, const char *body, struct errbuf *err)
{
	size_t length = strlen(body);
	int fd = directory_open_file(directory_fd, RECORDING_MANIFEST_NEW, O_TRUNC);
	int code = 0;

	if (fd < 0)
		return errbuf_set(err, fd, "%s", strerror(-fd));
	for (size_t at = 0; at < length && !code;) {
		ssize_t written = write(fd, body + at, length - at);

		if (written > 0)
			at += (size_t)written;
		else if (written == 0 || errno != EINTR)
			code = written ? -errno : -ENOSPC;
	}
	if (close(fd) && !code)
		code = -errno;
	if (!code &&
	    renameat(directory_fd, RECORDING_MANIFEST_NEW, directory_fd, RECORDING_MANIFEST))
		code = -errno;
	if (code)
		unlinkat(directory_fd, RECORDING_MANIFEST_NEW, 0);
	return code ? errbuf_set(err, code, "%s", strerror(-code)) : 0;
}

int manifest_write(const struct recorder *recorder, bool complete, uint64_t unseen_cpu_ns,
		   struct errbuf *err)
{
	json_t *root = manifest(recorder, complete, unseen_cpu_ns);
	char *body = json_dumps(root, JSON_INDENT(2));
	int code;

	json_decref(root);
	if (!body)
		return errbuf_set(err, -ENOMEM, "Out of memory");
	code = write_text(recorder->directory.fd, body, err);
	free(body);
	if (code)
		errbuf_prepend(err, code, "Cannot write %s/manifest.json",
			       recorder->directory.path);
	return code;
}
