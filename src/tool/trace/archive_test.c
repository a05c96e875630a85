/* SPDX-License-Identifier: MIT */
/* Archives: what went in comes out byte by byte, and hostile ones are survived. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/event/ctf.h"
#include "core/event/event.h"
#include "make_recording.h"
#include "read_made.h"
#include "tool/trace/archive.h"
#include "tool/trace/coder.h"
#include "tool/trace/columns.h"

#define T0 1000000000ull

struct folder {
	char path[64], recording[96], archive[96], extracted[96];
};

static void run_command(const char *format, const char *a, const char *b)
{
	char command[256];

	snprintf(command, sizeof(command), format, a, b);
	assert_int_equal(system(command), 0);
}

static int set_up(void **state)
{
	struct folder *folder = calloc(1, sizeof(*folder));

	strcpy(folder->path, "/tmp/archive-test-XXXXXX");
	assert_non_null(mkdtemp(folder->path));
	snprintf(folder->recording, sizeof(folder->recording), "%s/recording", folder->path);
	snprintf(folder->archive, sizeof(folder->archive), "%s/archive", folder->path);
	snprintf(folder->extracted, sizeof(folder->extracted), "%s/extracted", folder->path);
	*state = folder;
	return 0;
}

static int tear_down(void **state)
{
	struct folder *folder = *state;

	run_command("rm -r '%s'%s", folder->path, "");
	free(folder);
	return 0;
}

/* What cannot be packed leaves the archive as it was. */
static int pack(const struct folder *folder, const char *recording, struct errbuf *err)
{
	int fd = open(folder->archive, O_WRONLY | O_CREAT | O_CLOEXEC, 0666), rc;

	assert_true(fd >= 0);
	rc = archive_write(recording, fd, err);
	if (!rc)
		assert_int_equal(ftruncate(fd, lseek(fd, 0, SEEK_CUR)), 0);
	assert_int_equal(close(fd), 0);
	return rc;
}

static void make_archive(struct folder *folder, const struct maker_load *load)
{
	struct maker *maker = maker_new();
	struct errbuf err = {{0}};

	maker_load(maker, load);
	assert_int_equal(maker_write(maker, folder->recording), 0);
	maker_free(maker);
	pack(folder, folder->recording, &err);
	assert_string_equal(err.text, "");
}

static uint8_t *load_file(const char *path, size_t *ret_length)
{
	FILE *file = fopen(path, "re");
	uint8_t *bytes;

	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	*ret_length = (size_t)ftell(file);
	rewind(file);
	bytes = malloc(*ret_length + 1);
	assert_int_equal(fread(bytes, 1, *ret_length, file), *ret_length);
	fclose(file);
	return bytes;
}

static void test_archive__gives_back_every_byte(void **state)
{
	struct folder *folder = *state;
	struct maker_load load = maker_load_default();
	struct errbuf err = {{0}};

	load.samples = 20000;
	load.threads = 3;
	load.events = 3;
	make_archive(folder, &load);
	run_command("echo text > '%s/ust/metadata'%s", folder->recording, "");
	run_command("truncate -s 999 '%s/ust/slot_0001'%s", folder->recording, "");
	assert_int_equal(pack(folder, folder->recording, &err), 0);
	assert_int_equal(archive_extract(folder->archive, folder->extracted, &err), 0);
	run_command("diff -r '%s' '%s'", folder->recording, folder->extracted);
	assert_int_equal(archive_extract(folder->archive, folder->extracted, &err), -EEXIST);
}

static void test_archive__reads_as_the_recording_does(void **state)
{
	struct maker_load load = maker_load_default();
	struct trace *plain, *packed;
	struct folder *folder = *state;
	struct errbuf err = {{0}};

	make_archive(folder, &load);
	assert_int_equal(trace_open(folder->recording, NULL, NULL, &plain, &err), 0);
	assert_int_equal(trace_open(folder->archive, NULL, NULL, &packed, &err), 0);
	assert_int_equal(plain->nr_samples, 100000);
	assert_int_equal(packed->nr_samples, plain->nr_samples);
	assert_memory_equal(packed->samples, plain->samples,
			    plain->nr_samples * sizeof(*plain->samples));
	assert_int_equal(packed->nr_problems, 0);
	assert_int_equal(packed->nr_functions, plain->nr_functions);
	trace_free(plain);
	trace_free(packed);
}

/* What 100,000 more samples add to the archive, in bytes a sample. */
static double marginal_bytes(struct folder *folder, struct maker_load load)
{
	size_t length, longer;

	make_archive(folder, &load);
	free(load_file(folder->archive, &length));
	load.samples += 100000;
	make_archive(folder, &load);
	free(load_file(folder->archive, &longer));
	return (double)(longer - length) / 100000;
}

/* 200 stacks that are as frequent, and 40,001 distances from the tick: 22.93 bits, 2.867 bytes. */
static void test_archive__takes_what_chance_needs(void **state)
{
	struct maker_load load = maker_load_default();
	double bytes;

	load.stacks = 200;
	load.depth = 32;
	load.threads = 2;
	bytes = marginal_bytes(*state, load);
	print_message("%.3f bytes a sample\n", bytes);
	assert_true(bytes < 2.89);
}

static void test_archive__takes_less_where_stacks_are_not_as_frequent(void **state)
{
	struct maker_load load = maker_load_default();
	double bytes;

	load.stacks = 200;
	load.zipf = true;
	bytes = marginal_bytes(*state, load);
	print_message("%.3f bytes a sample\n", bytes);
	assert_true(bytes < 2.68);
}

static void test_archive__failure_leaves_nothing(void **state)
{
	struct maker_load load = maker_load_default();
	struct folder *folder = *state;
	struct errbuf err = {{0}};
	size_t length, after;

	load.samples = 10;
	make_archive(folder, &load);
	free(load_file(folder->archive, &length));
	assert_int_equal(pack(folder, folder->archive, &err), -ENOTDIR);
	assert_non_null(strstr(err.text, "is an archive already"));
	assert_int_equal(pack(folder, "/dev/null", &err), -ENOTDIR);
	assert_string_equal(err.text, "'/dev/null' is no recording: it is no directory");
	run_command("rm '%s/manifest.json'%s", folder->recording, "");
	assert_int_equal(pack(folder, folder->recording, &err), -ENOENT);
	assert_non_null(strstr(err.text, "manifest.json"));
	free(load_file(folder->archive, &after));
	assert_int_equal(after, length);
	assert_int_equal(pack(folder, "/nonexistent", &err), -ENOENT);
	run_command("test $(ls '%s' | wc -l) = 2%s", folder->path, "");
}

/*
 * Open these bytes as an archive. Whatever comes of it, it must end well; and a trace without a
 * problem must be the right one, as some bits of a zstd frame mean nothing.
 */
static bool try_bytes(const uint8_t *bytes, size_t length, const struct trace *right)
{
	struct trace *trace = NULL;
	struct errbuf err = {{0}};
	struct input input;
	bool whole;

	if (input_open_archive(&input, bytes, length, &err)) {
		assert_true(err.text[0]);
		return false;
	}
	trace_read(&input, NULL, NULL, &trace, &err);
	whole = trace && !trace->nr_problems;
	if (whole && right) {
		assert_int_equal(trace->nr_samples, right->nr_samples);
		assert_memory_equal(trace->samples, right->samples,
				    right->nr_samples * sizeof(*right->samples));
	}
	trace_free(trace);
	input_release(&input);
	return whole;
}

static void test_archive__cut_at_every_byte_is_never_whole(void **state)
{
	struct maker_load load = maker_load_default();
	struct folder *folder = *state;
	size_t length;
	uint8_t *bytes;

	load.samples = 50;
	load.stacks = 5;
	load.functions = 5;
	make_archive(folder, &load);
	bytes = load_file(folder->archive, &length);
	assert_true(try_bytes(bytes, length, NULL));
	for (size_t i = 0; i < length; i++) {
		uint8_t *exact = malloc(i + 1); /* so that a byte too far is seen */

		memcpy(exact, bytes, i);
		assert_false(try_bytes(exact, i, NULL));
		free(exact);
	}
	free(bytes);
}

static void test_archive__every_byte_changed_never_harms(void **state)
{
	struct maker_load load = maker_load_default();
	struct folder *folder = *state;
	struct errbuf err = {{0}};
	struct trace *right;
	uint8_t *bytes;
	size_t length;

	load.samples = 50;
	load.stacks = 5;
	load.functions = 5;
	make_archive(folder, &load);
	bytes = load_file(folder->archive, &length);
	assert_int_equal(trace_open(folder->archive, NULL, NULL, &right, &err), 0);
	for (size_t i = 0; i < length; i++)
		for (unsigned int change = 1; change < 256; change *= 3) {
			bytes[i] ^= (uint8_t)change;
			try_bytes(bytes, length, right);
			bytes[i] ^= (uint8_t)change;
		}
	trace_free(right);
	free(bytes);
}

static void test_archive__hostile_tables_are_refused(void **state)
{
	struct maker *maker = maker_new();
	struct errbuf err = {{0}};
	struct input input;
	uint64_t huge = 1ull << 60;
	uint8_t *bytes;
	size_t length;

	(void)state;
	maker_begin(maker, 0, 1, 1, T0);
	maker_sample(maker, 0, 0, T0, 0, 0, 1);
	bytes = maker_stored(maker, &length);
	memcpy(bytes + 8 + 8, &huge, sizeof(huge)); /* the manifest's length */
	assert_int_equal(input_open_archive(&input, bytes, length, &err), -EFBIG);
	memcpy(bytes + 8 + 32, "../evil.jso", 11);
	assert_int_equal(input_open_archive(&input, bytes, length, &err), 0);
	assert_int_equal(input.nr_files, 0);
	assert_non_null(input.damage);
	input_release(&input);
	free(bytes);
	maker_free(maker);
}

/* Columns of streams that no recorder writes. */
static void test_columns__what_cannot_come_back_is_refused(void **state)
{
	struct maker *maker = maker_new();
	struct maker_bytes *stream = &maker->streams[0].bytes;
	struct bytes packed = {0};

	(void)state;
	maker_begin(maker, 0, 1, 1, T0);
	maker_sample(maker, 0, 0, T0 + (1ull << 28), 0, 0, 1); /* a long header */
	maker_sample(maker, 0, 7, 0, 1, 2, UINT64_MAX);	       /* back in time, wide */
	maker_sample(maker, 0, 7, UINT64_MAX, UINT32_MAX, UINT32_MAX, 0);
	maker_begin(maker, 0, 1, 1, 5); /* an empty packet */
	maker_finish(maker);
	assert_int_equal(columns_pack(stream->at, stream->length, &packed), 0);
	assert_int_equal(columns_pack(stream->at, 0, &packed), 0);
	assert_int_equal(columns_pack(stream->at, stream->length - 1, &packed), -EBADMSG);
	stream->at[CTF_PREFIX_BYTES] = 0xff; /* 31, and bits that nobody reads */
	assert_int_equal(columns_pack(stream->at, stream->length, &packed), -EBADMSG);
	free(packed.at);
	maker_free(maker);
}

/* A stream of one thread, sample i at times(i); returns the packed bytes of a sample. */
static double packed_stream(uint64_t (*times)(uint64_t i), uint64_t count)
{
	struct maker *maker = maker_new();
	struct maker_bytes *stream = &maker->streams[0].bytes;
	struct bytes packed = {0};
	double bytes;

	for (uint64_t i = 0; i < 20000; i++) {
		if (i % 1000 == 0)
			maker_begin(maker, 0, 1, 1, times(i));
		maker_sample(maker, 0, 0, times(i), 0, 1, count);
	}
	maker_finish(maker);
	assert_int_equal(columns_pack(stream->at, stream->length, &packed), 0);
	bytes = (double)packed.length / 20000;
	free(packed.at);
	maker_free(maker);
	return bytes;
}

static uint64_t scrambled(uint64_t i)
{
	return (i + 1) * 0x9e3779b97f4a7c15ull >> 40; /* 24 bits */
}

/* On the scheduler's ticks, some of them missed, up to 1023 ns late. */
static uint64_t on_a_grid(uint64_t i)
{
	return T0 + 4000000 * (i + i / 3 * 2) + scrambled(i) % 1024;
}

/* A period after the sample before, but every tenth up to 16 ms later. */
static uint64_t on_a_shifting_grid(uint64_t i)
{
	uint64_t time = T0 + 1000000 * i + scrambled(i) % 16;

	for (uint64_t k = 1; k <= i / 10 && k <= 2000; k++)
		time += scrambled(k);
	return time;
}

static void test_columns__tell_times_from_what_suits_them(void **state)
{
	(void)state;
	assert_true(packed_stream(on_a_grid, 4000000) < 10.2 / 8 + 0.25); /* and a third a step */
	assert_true(packed_stream(on_a_shifting_grid, 1000000) < 5.5 / 8 + 0.5);
}

/* The coder's column again, and how long its code was. */
static size_t coded_length(const uint8_t *column, size_t length)
{
	struct bytes code = {0};
	uint8_t *again = malloc(length + 1), *exact;
	size_t coded;

	assert_int_equal(coder_pack(column, length, &code), 0);
	coded = code.length;
	exact = malloc(coded); /* so that a byte too far is seen */
	memcpy(exact, code.at, coded);
	coder_unpack(exact, coded, again, length);
	assert_memory_equal(again, column, length);
	for (size_t i = 0; i < coded; i += coded / 8 + 1) { /* damaged, cut off: some column */
		exact[i] ^= 0x55;
		coder_unpack(exact, coded - i, again, length);
	}
	free(exact);
	free(again);
	free(code.at);
	return coded;
}

static void test_coder__takes_what_frequencies_allow(void **state)
{
	uint8_t column[65536] = {0};

	(void)state;
	assert_true(coded_length(column, 0) <= 4);
	assert_true(coded_length(column, sizeof(column)) < 64);
	column[40000] = 255; /* what was certain until now */
	assert_true(coded_length(column, sizeof(column)) < 100);
	for (size_t i = 0; i < sizeof(column); i++)
		column[i] = (uint8_t)(scrambled(i) % 200); /* 7.64 bits */
	assert_in_range(coded_length(column, sizeof(column)), 7.64 / 8 * sizeof(column),
			7.70 / 8 * sizeof(column));
	for (size_t i = 0; i < sizeof(column); i++)
		column[i] = (uint8_t)(scrambled(i) % 16 ? 7 : 200); /* 0.337 bits */
	assert_in_range(coded_length(column, sizeof(column)), 0.3 / 8 * sizeof(column),
			0.36 / 8 * sizeof(column));
	for (size_t i = 0; i < sizeof(column); i++)
		column[i] = (uint8_t)scrambled(i);
	assert_true(coded_length(column, sizeof(column)) < sizeof(column) * 101 / 100);
}

static struct maker *make_definitions(void)
{
	struct maker *maker = maker_new();
	struct maker_thread thread = {.pid = 1, .tid = 2, .name = "t"};

	maker_code(maker, 1, "f", "f.py", 1, 5);
	maker_node(maker, 1, 0, NODE_PYTHON, 1, 1);
	maker_node(maker, 2, 1, NODE_NATIVE, UINT32_MAX, UINT64_MAX);
	maker_module(maker, 1, "/lib/x.so");
	maker_node(maker, 900, 7000, 255, 0, 0); /* of no use, but bytes */
	maker_thread(maker, &thread);
	maker_process(maker, 1, 0, "command", "reason");
	maker_node(maker, 3, UINT32_MAX, NODE_KERNEL, 0, 5);
	maker_finish(maker);
	return maker;
}

/* Whole, cut and changed, they come back or are refused; and so do their columns. */
static void test_definitions__come_back_whatever_they_are(void **state)
{
	struct maker *maker = make_definitions();
	struct maker_bytes *plain = &maker->definitions.bytes;
	uint8_t *again = malloc(plain->length + 1);
	struct bytes packed = {0}, out = {0};

	(void)state;
	assert_int_equal(definitions_pack(plain->at, plain->length, &packed), 0);
	assert_int_equal(definitions_unpack(packed.at, packed.length, again, plain->length), 0);
	assert_memory_equal(again, plain->at, plain->length);
	for (size_t i = 0; i < plain->length; i++) {
		uint8_t *exact = malloc(i + 1);

		memcpy(exact, plain->at, i);
		assert_int_equal(definitions_pack(exact, i, &out), 0); /* which compares */
		free(exact);
		plain->at[i] ^= 0xff;
		assert_int_equal(definitions_pack(plain->at, plain->length, &out), 0);
		plain->at[i] ^= 0xff;
		out.length = 0;
	}
	for (size_t i = 0; i < packed.length; i++) {
		assert_int_equal(definitions_unpack(packed.at, i, again, plain->length), -EBADMSG);
		packed.at[i] ^= 0xff;
		definitions_unpack(packed.at, packed.length, again, plain->length);
		packed.at[i] ^= 0xff;
	}
	free(again);
	free(packed.at);
	free(out.at);
	maker_free(maker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_archive__gives_back_every_byte, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_archive__reads_as_the_recording_does, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_archive__takes_what_chance_needs, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			test_archive__takes_less_where_stacks_are_not_as_frequent, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(test_archive__failure_leaves_nothing, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_archive__cut_at_every_byte_is_never_whole,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_archive__every_byte_changed_never_harms,
						set_up, tear_down),
		cmocka_unit_test(test_archive__hostile_tables_are_refused),
		cmocka_unit_test(test_columns__what_cannot_come_back_is_refused),
		cmocka_unit_test(test_columns__tell_times_from_what_suits_them),
		cmocka_unit_test(test_coder__takes_what_frequencies_allow),
		cmocka_unit_test(test_definitions__come_back_whatever_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
