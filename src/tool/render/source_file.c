/* SPDX-License-Identifier: MIT */
#include "tool/render/source_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOURCE_BYTES_MAX                                                         \
	(64 << 20) /* generated code has megabytes; no source has more than this \
		    */
#define TAB_COLUMNS 8

/* Nothing but a regular file is opened for good: a pipe would wait, a device would act. */
static int open_source(const char *directory, const char *path, struct stat *ret_stat)
{
	char *joined = NULL;
	int fd, rc = 0;

	if (path[0] != '/' && directory && asprintf(&joined, "%s/%s", directory, path) < 0)
		return -ENOMEM;
	fd = open(joined ? joined : path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, ret_stat) < 0)
		rc = -errno;
	else if (!S_ISREG(ret_stat->st_mode))
		rc = -EINVAL;
	else if (ret_stat->st_size > SOURCE_BYTES_MAX)
		rc = -EFBIG;
	free(joined);
	if (rc < 0 && fd >= 0)
		close(fd);
	return rc < 0 ? rc : fd;
}

static int read_bytes(int fd, char *bytes, size_t room, size_t *ret_length)
{
	size_t length = 0;

	while (length < room) {
		ssize_t got = read(fd, bytes + length, room - length);

		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		length += (size_t)got;
	}
	*ret_length = length;
	return 0;
}

/* Copy with tabs as blanks and lines ended by zeros; @to has room. Returns the lines. */
static size_t split(const char *from, size_t length, char *to, char **lines)
{
	size_t nr = 0, column = 0;
	bool at_start = true;

	for (size_t i = 0; i < length; i++) {
		if (at_start)
			lines[nr++] = to;
		at_start = from[i] == '\n';
		if (from[i] == '\t') {
			do
				*to++ = ' ';
			while (++column % TAB_COLUMNS);
		} else if (at_start) {
			if (i > 0 && from[i - 1] == '\r' && to > lines[nr - 1])
				to--;
			*to++ = 0;
			column = 0;
		} else {
			*to++ = from[i] ? from[i] : ' ';
			column++;
		}
	}
	*to = 0;
	return nr;
}

static int split_lines(const char *bytes, size_t length, struct source_file *file)
{
	size_t nr_lines = 1, nr_tabs = 0;

	for (size_t i = 0; i < length; i++) {
		nr_lines += bytes[i] == '\n';
		nr_tabs += bytes[i] == '\t';
	}
	file->text = malloc(length + nr_tabs * (TAB_COLUMNS - 1) + 1);
	file->lines = calloc(nr_lines, sizeof(*file->lines));
	if (!file->text || !file->lines) {
		source_file_release(file);
		return -ENOMEM;
	}
	file->nr_lines = split(bytes, length, file->text, file->lines);
	return 0;
}

int source_file_load(const char *directory, const char *path, struct source_file *ret_file)
{
	struct source_file file = {0};
	struct stat stat;
	size_t length = 0;
	char *bytes;
	int fd = open_source(directory, path, &stat), rc;

	if (fd < 0)
		return fd;
	bytes = malloc((size_t)stat.st_size + 1);
	rc = bytes ? read_bytes(fd, bytes, (size_t)stat.st_size, &length) : -ENOMEM;
	if (rc == 0)
		rc = split_lines(bytes, length, &file);
	free(bytes);
	close(fd);
	if (rc < 0)
		return rc;
	file.modified_ns = (int64_t)stat.st_mtim.tv_sec * 1000000000 + stat.st_mtim.tv_nsec;
	*ret_file = file;
	return 0;
}

void source_file_release(struct source_file *file)
{
	free(file->text);
	free(file->lines);
	memset(file, 0, sizeof(*file));
}
