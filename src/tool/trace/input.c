/* SPDX-License-Identifier: MIT */
/* The files of a recording: listing and reading a directory; the archive's part is in archive.c. */
#include "tool/trace/input.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/trace/archive.h"

int input_add(struct input *input, const char *name, size_t name_length,
	      struct input_file **ret_file)
{
	struct input_file *files = input->files;
	char *copy;

	if (input->nr_files >= INPUT_FILES_MAX)
		return -E2BIG;
	if (!(input->nr_files & (input->nr_files - 1))) { /* a power of two: full */
		files = reallocarray(files, input->nr_files ? 2 * input->nr_files : 1,
				     sizeof(*files));
		if (!files)
			return -ENOMEM;
		input->files = files;
	}
	copy = strndup(name, name_length);
	if (!copy)
		return -ENOMEM;
	files[input->nr_files] = (struct input_file){.name = copy};
	*ret_file = &files[input->nr_files++];
	return 0;
}

static int compare_files(const void *a, const void *b)
{
	return strcmp(((const struct input_file *)a)->name, ((const struct input_file *)b)->name);
}

void input_sort(struct input *input)
{
	if (input->nr_files)
		qsort(input->files, input->nr_files, sizeof(*input->files), compare_files);
}

/* Take @name into the list where it is a regular file. */
static int add_if_regular(struct input *input, const char *name)
{
	struct input_file *file;
	struct stat status;
	int rc;

	if (fstatat(input->directory, name, &status, 0) || !S_ISREG(status.st_mode))
		return 0;
	rc = input_add(input, name, strlen(name), &file);
	if (!rc)
		file->length = (uint64_t)status.st_size;
	return rc;
}

static int list_streams(struct input *input)
{
	char name[INPUT_NAME_MAX + 8];
	struct dirent *entry;
	DIR *directory;
	int fd, rc = 0;

	fd = openat(input->directory, "ust", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 0; /* nothing recorded yet: what reads the files will say so */
	directory = fdopendir(fd);
	if (!directory) {
		close(fd);
		return -ENOMEM;
	}
	while (!rc && (entry = readdir(directory))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "ust/%s", entry->d_name);
		rc = add_if_regular(input, name);
	}
	closedir(directory);
	return rc;
}

/* The recorder has its directory locked (tool/recorder/directory.c), where there are such locks. */
static bool is_locked(int directory)
{
	if (flock(directory, LOCK_SH | LOCK_NB))
		return errno == EWOULDBLOCK;
	flock(directory, LOCK_UN);
	return false;
}

int input_open_directory(struct input *ret_input, const char *path, struct errbuf *err)
{
	struct input input = {.directory = -1};
	int rc;

	input.directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (input.directory < 0)
		return errbuf_set(err, -errno, "Cannot open '%s': %s", path, strerror(errno));
	input.live = is_locked(input.directory); /* before its manifest may become the last one */
	rc = add_if_regular(&input, "manifest.json");
	if (!rc)
		rc = list_streams(&input);
	if (rc) {
		input_release(&input);
		return errbuf_set(err, rc, "Cannot list '%s': %s", path, strerror(-rc));
	}
	input_sort(&input);
	*ret_input = input;
	return 0;
}

void input_release(struct input *input)
{
	for (size_t i = 0; i < input->nr_files; i++)
		free(input->files[i].name);
	free(input->files);
	free(input->owned);
	if (input->directory >= 0)
		close(input->directory);
	*input = (struct input){.directory = -1};
}

const struct input_file *input_find(const struct input *input, const char *name)
{
	struct input_file key = {.name = (char *)name};

	if (!input->nr_files)
		return NULL;
	return bsearch(&key, input->files, input->nr_files, sizeof(key), compare_files);
}

int read_whole(int fd, const char *name, uint8_t **ret_bytes, size_t *ret_length,
	       struct errbuf *err)
{
	struct stat status;
	size_t length, done = 0;
	uint8_t *bytes;

	if (fstat(fd, &status))
		return errbuf_set(err, -errno, "Cannot read '%s': %s", name, strerror(errno));
	if (!S_ISREG(status.st_mode))
		return errbuf_set(err, -EINVAL, "Cannot read '%s': not a regular file", name);
	length = (size_t)status.st_size;
	bytes = malloc(length + 1);
	if (!bytes)
		return errbuf_set(err, -ENOMEM, "Cannot read '%s': out of memory", name);
	while (done < length) {
		ssize_t got = read(fd, bytes + done, length - done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			int code = -errno;

			free(bytes);
			return errbuf_set(err, code, "Cannot read '%s': %s", name, strerror(-code));
		}
		if (!got)
			break; /* it shrank meanwhile */
		done += (size_t)got;
	}
	bytes[done] = 0;
	*ret_bytes = bytes;
	*ret_length = done;
	return 0;
}

int input_load(const struct input *input, const struct input_file *file, uint8_t **ret_bytes,
	       size_t *ret_length, struct errbuf *err)
{
	int fd, rc;

	if (input->directory < 0)
		return archive_unpack(input, file, ret_bytes, ret_length, err);
	fd = openat(input->directory, file->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return errbuf_set(err, -errno, "Cannot open '%s': %s", file->name, strerror(errno));
	rc = read_whole(fd, file->name, ret_bytes, ret_length, err);
	close(fd);
	return rc;
}
