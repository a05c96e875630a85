/* SPDX-License-Identifier: MIT */
/*
 * build/src/tool/cli/pathprof -> build/web/NAME
 * PREFIX/bin/pathprof         -> PREFIX/share/pathprof/NAME
 */
#include "tool/render/template.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEMPLATE_BYTES_MAX (64u << 20) /* hundreds of times the page that web/ builds */

static int read_whole(FILE *file, char **ret_text)
{
	size_t room = 1 << 18, length = 0;
	char *text = NULL;

	do {
		char *grown = realloc(text, (room *= 2) + 1);

		if (!grown || room > TEMPLATE_BYTES_MAX) {
			free(grown ? grown : text);
			return grown ? -EFBIG : -ENOMEM;
		}
		text = grown;
		length += fread(text + length, 1, room - length, file);
	} while (length == room);
	if (ferror(file)) {
		free(text);
		return -EIO;
	}
	text[length] = 0;
	*ret_text = text;
	return 0;
}

/* The directory of the running program, without a slash at its end. */
static int program_directory(char *directory, size_t room)
{
	ssize_t length = readlink("/proc/self/exe", directory, room - 1);
	char *slash;

	if (length < 0)
		return -errno;
	directory[length] = 0;
	slash = strrchr(directory, '/');
	if (!slash)
		return -ENOENT;
	*slash = 0;
	return 0;
}

int template_read(const char *name, char **ret_text, struct errbuf *err)
{
	static const char *const places[] = {"../../../web", "../share/pathprof"};
	char directory[PATH_MAX], path[PATH_MAX + 64];
	int rc = program_directory(directory, sizeof(directory));

	if (rc < 0)
		return errbuf_set(err, rc, "Cannot find the program's own directory: %s",
				  strerror(-rc));
	for (size_t i = 0; i < 2; i++) {
		FILE *file;

		snprintf(path, sizeof(path), "%s/%s/%s", directory, places[i], name);
		file = fopen(path, "re");
		if (!file)
			continue;
		rc = read_whole(file, ret_text);
		fclose(file);
		return rc < 0 ? errbuf_set(err, rc, "Cannot read '%s': %s", path, strerror(-rc))
			      : 0;
	}
	return errbuf_set(
		err, -ENOENT,
		"The page template '%s' is not installed: this pathprof was built without "
		"its web part, which needs npm; the other formats work without it",
		path);
}
