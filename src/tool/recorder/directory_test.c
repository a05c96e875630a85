/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
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
	assert_non_null(strstr(err.text, "'notes.txt'"));
	assert_true(exists("k.old/ust/notes.txt"));
	assert_true(exists("k/ust/slot_0001"));
	/* Nothing of it went, so that it goes on once the file is elsewhere. */
	assert_true(exists("k.old/ust/slot_0002") && exists("k.old/manifest.json"));
	assert_int_equal(unlink("k.old/ust/notes.txt"), 0);
	put_file("k.old/notes.txt", "x");
	assert_int_equal(create("k", &directory), -ENOTEMPTY);
	assert_true(exists("k.old/ust/slot_0002") && exists("k.old/manifest.json"));
	assert_int_equal(unlink("k.old/notes.txt"), 0);
	assert_int_equal(mkdir("k.old/ust/waits", 0777), 0); /* a folder of a file's name */
	assert_int_equal(create("k", &directory), -ENOTEMPTY);
	assert_true(exists("k.old/ust/slot_0002") && exists("k.old/manifest.json"));
	assert_int_equal(rmdir("k.old/ust/waits"), 0);
	assert_int_equal(create("k", &directory), 0);
	assert_true(exists("k.old/ust/slot_0001"));
	directory_close(&directory);
}

static void write_all_files(const struct directory *directory)
{
	static const char *const top[] = {RECORDING_MANIFEST_NEW, RECORDING_SOCKET};
	static const char *const trace[] = {RECORDING_METADATA, RECORDING_DEFINITIONS,
					    RECORDING_WAITS, RECORDING_STREAM "0000",
					    RECORDING_STREAM "12345"};
	static const char manifest[] = "{ \"version\": 1, \"pathprof\": \"0.1.0\" }";
	int fd;

	for (size_t i = 0; i < sizeof(top) / sizeof(top[0]); i++)
		assert_true(!close(directory_open_file(directory->fd, top[i], O_EXCL)));
	for (size_t i = 0; i < sizeof(trace) / sizeof(trace[0]); i++)
		assert_true(!close(directory_open_file(directory->ust_fd, trace[i], O_EXCL)));
	fd = directory_open_file(directory->fd, RECORDING_MANIFEST, O_EXCL);
	assert_int_equal(write(fd, manifest, strlen(manifest)), strlen(manifest));
	assert_int_equal(close(fd), 0);
}

static void test_directory__what_can_be_written_can_be_removed(void **state)
{
	struct directory directory;

	(void)state;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(create("all", &directory), 0);
		assert_int_equal(directory.moved, i > 0);
		write_all_files(&directory);
		/* Not what the remover does not know. */
		assert_int_equal(directory_open_file(directory.ust_fd, "stacks", 0), -EINVAL);
		assert_int_equal(directory_open_file(directory.fd, "slot_x", 0), -EINVAL);
		assert_false(exists("all/ust/stacks"));
		directory_close(&directory);
	}
}

/* As a recorder leaves it that was killed before the manifest was there, or while removing. */
static void test_directory__what_is_left_of_a_recording_is_no_obstacle(void **state)
{
	struct directory directory;

	(void)state;
	assert_int_equal(mkdir("rest.old", 0777) | mkdir("rest.old/ust", 0777), 0);
	put_file("rest.old/ust/waits", "x");
	assert_int_equal(mkdir("rest", 0777) | mkdir("rest/ust", 0777), 0);
	put_file("rest/ust/metadata", "x");
	assert_int_equal(create("rest", &directory), 0);
	assert_true(exists("rest.old/ust/metadata"));
	assert_false(exists("rest.old/ust/waits"));
	directory_close(&directory);
	/* A folder of that name with anything else in it is somebody's. */
	assert_int_equal(mkdir("his", 0777) | mkdir("his/ust", 0777), 0);
	put_file("his/ust/readme", "x");
	assert_int_equal(create("his", &directory), -EEXIST);
	assert_true(exists("his/ust/readme"));
}

/* What is being recorded is neither moved nor removed, whatever its name. */
static void test_directory__a_recorders_is_let_alone(void **state)
{
	struct directory first, second = {.fd = -7};
	int reader;

	(void)state;
	assert_int_equal(create("l", &first), 0);
	assert_int_equal(create("l", &second), -EBUSY); /* also before it has a manifest */
	put_file("l/manifest.json", "{ \"pathprof\": 1 }");
	assert_int_equal(create("l", &second), -EBUSY);
	assert_non_null(strstr(err.text, "is being recorded"));
	assert_int_equal(second.fd, -7);
	assert_true(exists("l/ust") && !exists("l.old"));
	/* A program that is recorded may not keep it, but a recorder that is gone has no lock. */
	directory_close(&first);
	reader = open("l", O_RDONLY);
	assert_int_equal(flock(reader, LOCK_SH), 0);
	flock(reader, LOCK_UN);
	assert_int_equal(create("l", &first), 0);
	assert_true(first.moved);
	close(reader);
	make_recording("k2", "slot_0001");
	assert_int_equal(create("k2.old", &second), 0);
	put_file("k2.old/manifest.json", "{ \"pathprof\": 1 }");
	directory_close(&first);
	assert_int_equal(create("k2", &first), -EBUSY);
	assert_true(exists("k2.old/manifest.json") && exists("k2/ust/slot_0001"));
	directory_close(&second);
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
		cmocka_unit_test(test_directory__what_can_be_written_can_be_removed),
		cmocka_unit_test(test_directory__what_is_left_of_a_recording_is_no_obstacle),
		cmocka_unit_test(test_directory__a_recorders_is_let_alone),
		cmocka_unit_test(test_directory__an_empty_one_is_used),
		cmocka_unit_test(test_directory__discard_brings_the_former_back),
		cmocka_unit_test(test_directory__a_missing_parent_is_said),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
