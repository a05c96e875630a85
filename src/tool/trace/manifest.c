/* SPDX-License-Identifier: MIT */
/*
 * manifest.json (ARCHITECTURE.md, "The recording"). What is missing or of another type is left
 * empty or 0, so that older and newer manifests of version 1 can be read; what makes samples
 * unreadable (no object, a newer version, more events than there can be) is an error.
 */
#include "tool/trace/trace_priv.h"

#include <errno.h>
#include <stdlib.h>

#include <jansson.h>

#define LIST_MAX 65536 /* entries of any list: command words, notes */

struct manifest {
	struct reading *reading;
	struct trace *trace;
	json_t *root;
	bool out_of_memory;
};

/* Memory of the trace; remembers failure, so that callers need not look. */
static void *take(struct manifest *manifest, size_t bytes)
{
	void *memory = arena_take(manifest->reading->arena, bytes);

	if (!memory)
		manifest->out_of_memory = true;
	return memory;
}

static const char *copy_text(struct manifest *manifest, const json_t *value)
{
	size_t length = json_string_length(value);
	char *text;

	if (!json_is_string(value))
		return "";
	text = take(manifest, length + 1);
	if (!text)
		return "";
	memcpy(text, json_string_value(value), length);
	text_clean(text, length, true);
	return text;
}

static const char *text_of(struct manifest *manifest, const json_t *object, const char *key)
{
	return copy_text(manifest, json_object_get(object, key));
}

static uint64_t number_of(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

/* Length of a list, cut to what a manifest can hold; 0 where it is none. */
static size_t list_length(const json_t *list)
{
	size_t length = json_array_size(list);

	return length < LIST_MAX ? length : LIST_MAX;
}

static const char *const *read_texts(struct manifest *manifest, const char *key, size_t *ret_nr)
{
	json_t *list = json_object_get(manifest->root, key);
	size_t length = list_length(list);
	const char **texts = take(manifest, (length + 1) * sizeof(*texts));

	if (!texts)
		return NULL;
	for (size_t i = 0; i < length; i++)
		texts[i] = copy_text(manifest, json_array_get(list, i));
	*ret_nr = length;
	return texts;
}

static struct trace_count *read_counts(struct manifest *manifest, const char *key, size_t *ret_nr)
{
	json_t *object = json_object_get(manifest->root, key), *value;
	struct trace_count *counts =
		take(manifest, (json_object_size(object) + 1) * sizeof(*counts));
	const char *reason;
	size_t nr = 0;

	if (!counts)
		return NULL;
	json_object_foreach(object, reason, value)
	{
		char *copy;

		if (json_integer_value(value) <= 0)
			continue;
		copy = arena_copy(manifest->reading->arena, reason, strlen(reason));
		if (!copy) {
			manifest->out_of_memory = true;
			break;
		}
		text_clean(copy, strlen(copy), false);
		counts[nr].key = copy;
		counts[nr++].count = (uint64_t)json_integer_value(value);
	}
	*ret_nr = nr;
	return counts;
}

static void read_interpreters(struct manifest *manifest)
{
	json_t *list = json_object_get(manifest->root, "interpreters");
	size_t length = list_length(list);
	struct trace_interpreter *interpreters =
		take(manifest, (length + 1) * sizeof(*interpreters));

	size_t read = 0, without_lock = 0;

	if (!interpreters)
		return;
	for (size_t i = 0; i < length; i++) {
		json_t *object = json_array_get(list, i);
		json_t *problem = json_object_get(object, "problem");

		interpreters[i] = (struct trace_interpreter){
			.pid = (uint32_t)number_of(object, "pid"),
			.name = text_of(manifest, object, "name"),
			.path = text_of(manifest, object, "path"),
			.problem = json_is_string(problem) ? copy_text(manifest, problem) : NULL,
			.has_no_lock = json_is_true(json_object_get(object, "has_no_lock")),
		};
		read += !interpreters[i].problem;
		without_lock += !interpreters[i].problem && interpreters[i].has_no_lock;
	}
	manifest->trace->interpreters = interpreters;
	manifest->trace->nr_interpreters = length;
	manifest->trace->has_no_lock = read && without_lock == read;
}

static int read_events(struct manifest *manifest, struct errbuf *err)
{
	json_t *list = json_object_get(manifest->root, "events");
	size_t length = json_array_size(list);
	struct trace_event *events;

	if (!length || length > EVENTS_MAX)
		return errbuf_set(err, -EBADMSG, "manifest.json is damaged: it names %zu events",
				  length);
	events = take(manifest, length * sizeof(*events));
	if (!events)
		return 0;
	for (size_t i = 0; i < length; i++) {
		json_t *object = json_array_get(list, i);

		events[i] = (struct trace_event){
			.name = text_of(manifest, object, "name"),
			.unit = text_of(manifest, object, "unit"),
			.period = number_of(object, "period"),
			.jitter = number_of(object, "jitter"),
			.count = number_of(object, "count"),
			.trigger = text_of(manifest, object, "trigger"),
			.user_only = json_is_true(json_object_get(object, "user_only")),
		};
	}
	manifest->trace->events = events;
	manifest->trace->nr_events = length;
	return 0;
}

/* The waits of a recording with --wall; its event is known once all events are read. */
static void read_wall(struct manifest *manifest)
{
	json_t *object = json_object_get(manifest->root, "wall");
	struct trace *trace = manifest->trace;
	const char *event = json_string_value(json_object_get(object, "event"));

	if (!event)
		return;
	trace->wall = (struct trace_wall){
		.period_ns = number_of(object, "period_ns"),
		.waits = number_of(object, "waits"),
		.waited_ns = number_of(object, "waited_ns"),
		.seen = number_of(object, "seen"),
		.seen_ns = number_of(object, "seen_ns"),
		.rejected = number_of(object, "rejected"),
	};
	while (trace->wall.event + 1 < trace->nr_events &&
	       strcmp(trace->events[trace->wall.event].name, event) != 0)
		trace->wall.event++;
}

static void read_window(struct manifest *manifest)
{
	json_t *object = json_object_get(manifest->root, "window");

	manifest->trace->window = (struct trace_window){
		.given = json_is_object(object),
		.delay_ns = number_of(object, "delay_ns"),
		.duration_ns = number_of(object, "duration_ns"),
		.begin_ns = number_of(object, "begin_ns"),
		.end_ns = number_of(object, "end_ns"),
	};
}

static void read_fields(struct manifest *manifest)
{
	json_t *root = manifest->root, *overhead = json_object_get(root, "overhead");
	struct trace *trace = manifest->trace;

	trace->command = read_texts(manifest, "command", &trace->nr_command);
	trace->headlines = read_texts(manifest, "headlines", &trace->nr_headlines);
	trace->notes = read_texts(manifest, "notes", &trace->nr_notes);
	trace->working_directory = text_of(manifest, root, "working_directory");
	trace->host = text_of(manifest, root, "host");
	trace->kernel = text_of(manifest, root, "kernel");
	trace->cpu_model = text_of(manifest, root, "cpu_model");
	trace->version = text_of(manifest, root, "pathprof");
	trace->trigger = text_of(manifest, root, "trigger");
	trace->clock = text_of(manifest, json_object_get(root, "clock"), "name");
	trace->clock_offset_ns =
		json_integer_value(json_object_get(json_object_get(root, "clock"), "offset_ns"));
	trace->nr_cpus = (uint32_t)number_of(root, "cpus");
	trace->start_ns = number_of(root, "start_ns");
	trace->end_ns = number_of(root, "end_ns");
	trace->tick_ns = number_of(root, "tick_ns");
	trace->complete = json_is_true(json_object_get(root, "complete"));
	trace->ended = trace->complete || trace->end_ns;
	trace->handler_ns = number_of(overhead, "handler_ns");
	trace->recorder_ns = number_of(overhead, "recorder_ns");
	trace->unseen_cpu_ns = number_of(root, "unseen_cpu_ns");
	trace->lost = read_counts(manifest, "lost", &trace->nr_lost);
	trace->degraded = read_counts(manifest, "degraded", &trace->nr_degraded);
	trace->only_locked = json_object_get(root, "left_out") != NULL;
	trace->left_out = number_of(root, "left_out");
	read_interpreters(manifest);
	read_wall(manifest);
	read_window(manifest);
}

static int check_version(const json_t *root, struct errbuf *err)
{
	json_int_t version = json_integer_value(json_object_get(root, "version"));

	if (version == MANIFEST_VERSION)
		return 0;
	if (version > MANIFEST_VERSION)
		return errbuf_set(err, -ENOTSUP,
				  "The recording's format is version %lld and this pathprof reads "
				  "version %d: use a newer pathprof",
				  (long long)version, MANIFEST_VERSION);
	return errbuf_set(err, -EBADMSG, "manifest.json is damaged: it names no version");
}

int manifest_read(struct reading *reading, const uint8_t *bytes, size_t length, struct errbuf *err)
{
	struct manifest manifest = {.reading = reading, .trace = reading->trace};
	json_error_t error;
	int rc;

	manifest.root = json_loadb((const char *)bytes, length, 0, &error);
	if (!manifest.root)
		return errbuf_set(err, -EBADMSG, "manifest.json is damaged: line %d: %s",
				  error.line, error.text);
	rc = check_version(manifest.root, err);
	if (!rc)
		rc = read_events(&manifest, err);
	if (!rc)
		read_fields(&manifest);
	json_decref(manifest.root);
	if (!rc && manifest.out_of_memory)
		rc = errbuf_set(err, -ENOMEM, "Reading manifest.json: out of memory");
	return rc;
}
