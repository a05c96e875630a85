/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tool/recorder/recorder_types.h"

static char base[64];
static struct errbuf err;

static int enter(void **state)
{
	(void)state;
	snprintf(base, sizeof(base), "/tmp/pathprof-test-XXXXXX");
	return mkdtemp(base) && !chdir(base) ? 0 : -1;
}

/* Only what these tests make. */
static int leave(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", base);
	return chdir("/") || system(command);
}

static void put_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static bool exists(const char *path)
{
	return !access(path, F_OK);
}

/* A recording that can be told from others by the name of one stream. */
static void make_recording(const char *path, const char *stream)
{
	char name[128];

	assert_int_equal(mkdir(path, 0777), 0);
	snprintf(name, sizeof(name), "%s/ust", path);
	assert_int_equal(mkdir(name, 0777), 0);
	snprintf(name, sizeof(name), "%s/ust/%s", path, stream);
	put_file(name, "x");
	snprintf(name, sizeof(name), "%s/manifest.json", path);
	put_file(name, "{\n  \"version\": 1,\n  \"pathprof\": \"0.1.0\" }");
}

static int create(const char *path, struct directory *directory)
{
	memset(&err, 0, sizeof(err));
	return directory_create(path, directory, &err);
}

static void test_directory__is_made_with_its_trace(void **state)
{
	struct directory directory;

	(void)state;
	assert_int_equal(create("a.data/", &directory), 0);
	assert_int_equal(directory.path[0], '/');
	assert_true(exists("a.data/ust"));
	assert_false(directory.moved);
	assert_true(fcntl(directory.fd, F_GETFD) & FD_CLOEXEC);
	directory_close(&directory);
}

static void test_directory__older_recordings_move_and_the_oldest_goes(void **state)
{
	struct directory directory;

	(void)state;
	make_recording("d", "slot_0001");
	make_recording("d.old", "slot_0002");
	assert_int_equal(create("d", &directory), 0);
	assert_true(directory.moved);
	assert_true(exists("d.old/ust/slot_0001"));
	assert_false(exists("d.old/ust/slot_0002"));
	assert_false(exists("d/manifest.json"));
	directory_close(&directory);
}

static void test_directory__users_own_files_are_never_touched(void **state)
{
	struct directory directory = {.fd = -7};

	(void)state;
	assert_int_equal(mkdir("mine", 0777), 0);
	put_file("mine/thesis.txt", "x");
	assert_int_equal(create("mine", &directory), -EEXIST);
	assert_non_null(strstr(err.text, "-o"));
	assert_int_equal(directory.fd, -7);
	put_file("plain", "x");
	assert_int_equal(create("plain", &directory), -EEXIST);
	assert_true(exists("mine/thesis.txt") && exists("plain"));
	/* What is to be moved is ours, but its place is taken. */
	make_recording("r", "slot_0001");
	assert_int_equal(mkdir("r.old", 0777), 0);
	put_file("r.old/notes", "x");
	assert_int_equal(create("r", &directory), -EEXIST);
	assert_true(exists("r.old/notes") && exists("r/ust/slot_0001"));
}

static void test_directory__a_foreign_file_in_an_old_recording_keeps_it(void **state)
{
	struct directory directory;

	(void)state;
	make_recording("k", "slot_0001");
	make_recording("k.old", "slot_0002");
	put_file("k.old/ust/notes.txt", "x");
	assert_int_equal(create("k", &directory), -ENOTEMPTY);
	assert_true(exists("k.old/ust/notes.txt"));
	assert_true(exists("k/ust/slot_0001"));
}

static void test_directory__an_empty_one_is_used(void **state)
{
	struct directory directory;

	(void)state;
	assert_int_equal(mkdir("empty", 0777), 0);
	assert_int_equal(create("empty", &directory), 0);
	assert_false(directory.moved);
	directory_close(&directory);
}

static void test_directory__discard_brings_the_former_back(void **state)
{
	struct directory directory;

	(void)state;
	make_recording("b", "slot_0001");
	assert_int_equal(create("b", &directory), 0);
	put_file("b/manifest.json", "{ \"pathprof\": 1 }");
	directory_discard(&directory);
	assert_true(exists("b/ust/slot_0001"));
	assert_false(exists("b.old"));
}

static void test_directory__a_missing_parent_is_said(void **state)
{
	struct directory directory;

	(void)state;
	assert_int_equal(create("no/such/parent", &directory), -ENOENT);
	assert_non_null(strstr(err.text, "no/such/parent"));
	assert_int_equal(create("", &directory), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_directory__is_made_with_its_trace),
		cmocka_unit_test(test_directory__older_recordings_move_and_the_oldest_goes),
		cmocka_unit_test(test_directory__users_own_files_are_never_touched),
		cmocka_unit_test(test_directory__a_foreign_file_in_an_old_recording_keeps_it),
		cmocka_unit_test(test_directory__an_empty_one_is_used),
		cmocka_unit_test(test_directory__discard_brings_the_former_back),
		cmocka_unit_test(test_directory__a_missing_parent_is_said),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
