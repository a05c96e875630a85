/* SPDX-License-Identifier: MIT */
/*
 * Opening a recording: manifest, definitions, nodes, then one stream after the other.
 *
 * Nothing but the manifest is needed: without it there is no telling what the samples are. Whatever
 * else is missing or damaged is a sentence in `problems`.
 */
#include "tool/trace/trace_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SAMPLE_BYTES_MIN 16 /* compact header, two nodes, narrow count */

int array_fit(void **elements, size_t *room, size_t index, size_t element_bytes)
{
	size_t wanted = *room ? *room : 64;
	void *grown;

	if (index < *room)
		return 0;
	while (wanted <= index)
		wanted *= 2;
	grown = reallocarray(*elements, wanted, element_bytes);
	if (!grown)
		return -ENOMEM;
	memset((char *)grown + *room * element_bytes, 0, (wanted - *room) * element_bytes);
	*elements = grown;
	*room = wanted;
	return 0;
}

void reading_problem(struct reading *reading, const char *format, ...)
{
	char sentence[ERRBUF_BYTES];
	va_list arguments;
	const char *copy;

	if (reading->nr_problems >= TRACE_PROBLEMS_MAX - 1) {
		reading->nr_more_problems++;
		return;
	}
	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	text_clean(sentence, strlen(sentence), false); /* file names and JSON errors are foreign */
	copy = arena_copy(reading->arena, sentence, strlen(sentence));
	if (copy)
		reading->problems[reading->nr_problems++] = copy;
}

static void tell_progress(struct reading *reading, uint64_t bytes)
{
	reading->bytes_done += bytes;
	if (reading->progress)
		reading->progress(reading->user, reading->bytes_done, reading->bytes_total);
}

static int load_manifest(struct reading *reading, const struct input *input, struct errbuf *err)
{
	const struct input_file *file = input_find(input, "manifest.json");
	uint8_t *bytes;
	size_t length;
	int rc;

	if (!file)
		return errbuf_set(err, -ENOENT, "Not a recording: it has no manifest.json");
	rc = input_load(input, file, &bytes, &length, err);
	if (rc)
		return rc;
	rc = manifest_read(reading, bytes, length, err);
	free(bytes);
	return rc;
}

static int load_definitions(struct reading *reading, const struct input *input, struct errbuf *err)
{
	const struct input_file *file = input_find(input, "ust/definitions");
	struct trace_private *private = reading->trace->private;
	struct errbuf cause = {{0}};
	size_t length;
	int rc = 0;

	if (!file && reading->trace->ended) /* else nothing was written yet */
		reading_problem(reading, "ust/definitions is missing: no frame has a name");
	else if (file && input_load(input, file, &private->definitions, &length, &cause))
		reading_problem(reading, "%s", cause.text);
	else if (file)
		rc = definitions_read(reading, private->definitions, length, err);
	if (rc)
		return rc;
	if (nodes_resolve(reading) || threads_sort(reading))
		return errbuf_set(err, -ENOMEM, "Reading definitions: out of memory");
	tell_progress(reading, file ? file->length : 0);
	return 0;
}

static bool is_waits(const struct input_file *file)
{
	return !strcmp(file->name, "ust/waits");
}

static bool is_stream(const struct input_file *file)
{
	return !strncmp(file->name, "ust/slot_", strlen("ust/slot_")) || is_waits(file);
}

/* Make room for the samples of one more file; the last file leaves little unused. */
static int fit_samples(struct trace *trace, size_t *room, size_t more)
{
	size_t wanted = trace->nr_samples + more + 1;
	struct trace_sample *samples;

	if (wanted <= *room)
		return 0;
	samples = reallocarray(trace->samples, wanted, sizeof(*samples));
	if (!samples)
		return -ENOMEM;
	trace->samples = samples;
	*room = wanted;
	return 0;
}

static int load_streams(struct reading *reading, const struct input *input, struct errbuf *err)
{
	struct errbuf cause = {{0}};
	size_t length, room = 0;
	uint8_t *bytes;
	int rc = 0;

	for (size_t i = 0; i < input->nr_files && !rc; i++) {
		const struct input_file *file = &input->files[i];

		if (!is_stream(file))
			continue;
		if (input_load(input, file, &bytes, &length, &cause)) {
			reading_problem(reading, "%s", cause.text);
			continue;
		}
		rc = fit_samples(reading->trace, &room, length / SAMPLE_BYTES_MIN);
		if (!rc)
			rc = is_waits(file) ? waits_read(reading, file->name, bytes, length)
					    : samples_read(reading, file->name, bytes, length);
		free(bytes);
		tell_progress(reading, file->length);
	}
	return rc ? errbuf_set(err, rc, "Reading samples: out of memory") : 0;
}

static void sum_bytes(struct reading *reading, const struct input *input)
{
	for (size_t i = 0; i < input->nr_files; i++)
		if (is_stream(&input->files[i]) || !strcmp(input->files[i].name, "ust/definitions"))
			reading->bytes_total += input->files[i].length;
}

/* Threads that counted more samples than there are to read: their packets are gone. */
static void check_samples(struct reading *reading)
{
	const struct trace *trace = reading->trace;
	uint64_t expected = reading->recorded_samples, known = 0;

	for (size_t i = 0; i < reading->nr_recorded_threads; i++)
		known += trace->threads[i].samples;
	for (size_t i = 0; i < trace->nr_lost; i++)
		if (!strcmp(trace->lost[i].key, loss_key(LOSS_DISK)))
			known += trace->lost[i].count;
	if (expected > known)
		reading_problem(reading, "%llu samples that were taken are missing",
				(unsigned long long)(expected - known));
}

/* On the clock of recordings that are made here. */
static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* What is only known when all is read: ends, and what a recorder that was killed did not say. */
static int finish(struct reading *reading)
{
	struct trace *trace = reading->trace;
	const char **problems;

	if (trace->live)
		trace->end_ns = now_ns();
	if (trace->end_ns < reading->last_ns)
		trace->end_ns = reading->last_ns;
	for (size_t i = 0; i < trace->nr_threads; i++)
		if (!trace->threads[i].end_ns)
			trace->threads[i].end_ns = trace->end_ns;
	check_samples(reading);
	if (!trace->complete && reading->discarded)
		reading_problem(reading, "at least %llu samples were lost",
				(unsigned long long)reading->discarded);
	if (reading->nr_more_problems) {
		size_t more = reading->nr_more_problems;

		reading->nr_problems--; /* room for the last word */
		reading->nr_more_problems = 0;
		reading_problem(reading, "and %zu more problems", more + 1);
	}
	problems = arena_take(reading->arena, (reading->nr_problems + 1) * sizeof(*problems));
	if (!problems)
		return -ENOMEM;
	memcpy(problems, reading->problems, reading->nr_problems * sizeof(*problems));
	trace->problems = problems;
	trace->nr_problems = reading->nr_problems;
	return 0;
}

static int read_all(struct reading *reading, const struct input *input, struct errbuf *err)
{
	int rc;

	sum_bytes(reading, input);
	rc = load_manifest(reading, input, err);
	if (rc)
		return rc;
	reading->trace->live = input->live && !reading->trace->ended;
	if (input->damage)
		reading_problem(reading, "%s", input->damage);
	rc = load_definitions(reading, input, err);
	rc = rc ? rc : load_streams(reading, input, err);
	if (!rc && finish(reading))
		rc = errbuf_set(err, -ENOMEM, "Reading the recording: out of memory");
	return rc;
}

int trace_read(const struct input *input, trace_progress progress, void *user,
	       struct trace **ret_trace, struct errbuf *err)
{
	struct reading reading = {.progress = progress, .user = user};
	struct trace *trace = calloc(1, sizeof(*trace));
	int rc;

	if (trace)
		trace->private = calloc(1, sizeof(*trace->private));
	if (!trace || !trace->private) {
		free(trace);
		return errbuf_set(err, -ENOMEM, "Reading the recording: out of memory");
	}
	reading.trace = trace;
	reading.arena = &trace->private->arena;
	rc = read_all(&reading, input, err);
	free(reading.codes);
	free(reading.modules);
	free(reading.nodes);
	map_release(&reading.packet_threads);
	if (rc)
		trace_free(trace);
	else
		*ret_trace = trace;
	return rc;
}

static int open_input(struct input *ret_input, const char *path, struct errbuf *err)
{
	struct stat status;
	uint8_t *bytes;
	size_t length;
	int fd, rc;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &status)) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return errbuf_set(err, rc, "%s", strerror(-rc));
	}
	if (S_ISDIR(status.st_mode)) {
		close(fd);
		return input_open_directory(ret_input, path, err);
	}
	rc = read_whole(fd, path, &bytes, &length, err);
	close(fd);
	if (rc)
		return rc;
	rc = input_open_archive(ret_input, bytes, length, err);
	if (rc)
		free(bytes);
	else
		ret_input->owned = bytes;
	return rc;
}

int trace_open(const char *path, trace_progress progress, void *user, struct trace **ret_trace,
	       struct errbuf *err)
{
	struct input input;
	int rc;

	rc = open_input(&input, path, err);
	if (!rc) {
		rc = trace_read(&input, progress, user, ret_trace, err);
		input_release(&input);
	}
	return rc ? errbuf_prepend(err, rc, "Cannot read the recording '%s'", path) : 0;
}

void trace_free(struct trace *trace)
{
	if (!trace)
		return;
	free(trace->threads);
	free(trace->processes);
	free(trace->functions);
	free(trace->nodes);
	free(trace->samples);
	free(trace->private->definitions);
	arena_release(&trace->private->arena);
	free(trace->private);
	free(trace);
}

struct frame trace_frame(const struct trace *trace, uint32_t node)
{
	const struct trace_node *found =
		&trace->nodes[node < trace->nr_nodes ? node : trace->nr_nodes - 1];
	const struct trace_function *function = &trace->functions[found->function];

	return (struct frame){
		.function = function->name,
		.file = function->file,
		.line = found->line,
		.function_line = function->line,
		.kind = (enum frame_kind)function->kind,
	};
}
