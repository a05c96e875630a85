/* SPDX-License-Identifier: MIT */
#include "tool/cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES (1 << 20)

/* A large buffer for the file; the one of stdout must live as long as the program. */
static void set_buffer(struct output *output)
{
	char *buffer;

	if (output->file == stdout && __fbufsize(stdout) >= BUFFER_BYTES)
		return; /* it has one, and still needs it */
	buffer = malloc(BUFFER_BYTES);
	if (buffer && setvbuf(output->file, buffer, _IOFBF, BUFFER_BYTES) != 0) {
		free(buffer);
		buffer = NULL;
	}
	output->buffer = output->path ? buffer : NULL;
}

/* The mode of a new file: that of the one it replaces, or as the umask has it. */
static mode_t wanted_mode(const char *path)
{
	struct stat stat_now;
	mode_t mask;

	if (stat(path, &stat_now) == 0)
		return stat_now.st_mode & 0777;
	mask = umask(0);
	umask(mask);
	return 0666 & ~mask;
}

static int open_temporary(struct output *output)
{
	int fd;

	if (asprintf(&output->temporary, "%s.XXXXXX", output->path) < 0) {
		output->temporary = NULL;
		return -ENOMEM;
	}
	fd = mkostemp(output->temporary, O_CLOEXEC);
	if (fd < 0) {
		free(output->temporary);
		output->temporary = NULL;
		return -errno;
	}
	output->file = fdopen(fd, "w");
	if (!output->file || fchmod(fd, wanted_mode(output->path)) < 0) {
		int rc = -errno;

		if (!output->file)
			close(fd);
		return rc;
	}
	return 0;
}

static int open_file(const char *path, struct output *output)
{
	struct stat stat_now;

	/* A link stays a link: what it points to is replaced. */
	output->path = realpath(path, NULL);
	if (!output->path)
		output->path = strdup(path);
	if (!output->path)
		return -ENOMEM;
	if (stat(output->path, &stat_now) == 0 && !S_ISREG(stat_now.st_mode)) {
		output->file = fopen(output->path, "we");
		return output->file ? 0 : -errno;
	}
	return open_temporary(output);
}

static void forget(struct output *output)
{
	free(output->path);
	free(output->temporary);
	free(output->buffer);
	memset(output, 0, sizeof(*output));
}

static void abandon(struct output *output)
{
	if (output->file && output->file != stdout)
		fclose(output->file);
	if (output->temporary)
		unlink(output->temporary);
	forget(output);
}

int output_open(const char *path, struct output *ret_output, struct errbuf *err)
{
	struct output output = {0};
	int rc = 0;

	if (path && strcmp(path, "-") != 0)
		rc = open_file(path, &output);
	else
		output.file = stdout;
	if (rc < 0) {
		abandon(&output);
		return errbuf_set(err, rc, "Cannot create '%s': %s", path, strerror(-rc));
	}
	set_buffer(&output);
	*ret_output = output;
	return 0;
}

static int flush(FILE *file)
{
	errno = 0;
	if (fflush(file) == 0 && !ferror(file))
		return 0;
	return errno ? -errno : -EIO;
}

int output_check(struct errbuf *err)
{
	int rc = flush(stdout);

	return rc ? errbuf_set(err, rc, "Cannot write to 'standard output': %s", strerror(-rc)) : 0;
}

int output_commit(struct output *output, struct errbuf *err)
{
	bool is_file = output->path != NULL;
	int rc = flush(output->file);

	if (is_file && fclose(output->file) != 0 && rc == 0)
		rc = -errno;
	output->file = NULL;
	if (rc == 0 && output->temporary && rename(output->temporary, output->path) < 0)
		rc = -errno;
	if (rc < 0)
		errbuf_set(err, rc, "Cannot write to '%s': %s",
			   is_file ? output->path : "standard output", strerror(-rc));
	if (rc < 0 && output->temporary)
		unlink(output->temporary);
	forget(output);
	return rc;
}

int output_end(struct output *output, int rc, struct errbuf *err)
{
	if (rc == 0)
		return output_commit(output, err);
	abandon(output);
	return rc;
}
