/* SPDX-License-Identifier: MIT */
/*
 * The recording's directory, and what to do with one that is there.
 *
 *   PATH is free, or an empty directory    made, or used
 *   PATH is a recording                    moved to PATH.old; a recording there is removed
 *   anything else                          refused: nobody's files are moved or removed
 *
 * A recording is a directory whose manifest.json says so. Only names that a recording has are
 * ever unlinked, so what somebody put beside them stays and the removal is refused.
 */
#include "tool/recorder/recorder_types.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST_HEAD_BYTES 256 /* the keys "version" and "pathprof" come first */

static bool is_empty_directory(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	bool empty = directory != NULL;

	while (directory && (entry = readdir(directory)))
		empty = empty && (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."));
	if (directory)
		closedir(directory);
	return empty;
}

static bool is_recording(const char *path)
{
	char name[PATH_MAX + 16], head[MANIFEST_HEAD_BYTES + 1];
	struct stat status;
	ssize_t length;
	int fd;

	if (lstat(path, &status) || !S_ISDIR(status.st_mode))
		return false;
	snprintf(name, sizeof(name), "%s/manifest.json", path);
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return false;
	length = read(fd, head, MANIFEST_HEAD_BYTES);
	close(fd);
	if (length <= 0)
		return false;
	head[length] = 0;
	return head[0] == '{' && strstr(head, "\"pathprof\"");
}

static bool is_stream_name(const char *name)
{
	return !strncmp(name, "slot_", 5) && name[5] && !name[5 + strspn(name + 5, "0123456789")];
}

/* Unlink what a recording has; @fd is a recording's ust/. */
static void unlink_streams(int fd)
{
	DIR *directory = fdopendir(dup(fd));
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		if (is_stream_name(entry->d_name))
			unlinkat(fd, entry->d_name, 0);
	}
	if (directory)
		closedir(directory);
	unlinkat(fd, "metadata", 0);
	unlinkat(fd, "definitions", 0);
}

static int remove_recording(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	int ust_fd;

	if (fd < 0)
		return -errno;
	ust_fd = openat(fd, "ust", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (ust_fd >= 0) {
		unlink_streams(ust_fd);
		close(ust_fd);
		unlinkat(fd, "ust", AT_REMOVEDIR);
	}
	unlinkat(fd, "socket", 0);
	unlinkat(fd, "manifest.json.new", 0);
	/* The manifest last: until then it is a recording to the next one who looks. */
	if (unlinkat(fd, "manifest.json", 0) && errno != ENOENT) {
		close(fd);
		return -errno;
	}
	close(fd);
	return rmdir(path) ? -errno : 0;
}

static int make_way(const char *path, bool *ret_moved, struct errbuf *err)
{
	char old[PATH_MAX + 8];
	struct stat status;
	int code;

	if (lstat(path, &status))
		return 0;
	if (is_empty_directory(path))
		return 0;
	if (!is_recording(path))
		return errbuf_set(
			err, -EEXIST,
			"%s exists and is no recording of pathprof: name another place with "
			"-o",
			path);
	snprintf(old, sizeof(old), "%s.old", path);
	if (!lstat(old, &status)) {
		if (!is_recording(old) && !is_empty_directory(old))
			return errbuf_set(
				err, -EEXIST,
				"%s is to be moved to %s, which exists and is no recording of "
				"pathprof: name another place with -o",
				path, old);
		code = remove_recording(old);
		if (code)
			return errbuf_set(err, code, "Cannot remove the older recording %s: %s",
					  old,
					  code == -ENOTEMPTY ? "it holds files that are not a "
							       "recording's"
							     : strerror(-code));
	}
	if (rename(path, old))
		return errbuf_set(err, -errno, "Cannot move %s to %s: %s", path, old,
				  strerror(errno));
	*ret_moved = true;
	return 0;
}

/* The absolute path, without trailing slashes. */
static int absolute(const char *path, char ret_path[PATH_MAX], struct errbuf *err)
{
	char here[PATH_MAX] = "";
	size_t length = strlen(path);

	while (length > 1 && path[length - 1] == '/')
		length--;
	if (!length)
		return errbuf_set(err, -EINVAL, "The recording's directory has no name");
	if (path[0] != '/' && !getcwd(here, sizeof(here)))
		return errbuf_set(err, -errno, "Cannot tell the working directory: %s",
				  strerror(errno));
	if ((size_t)snprintf(ret_path, PATH_MAX, "%s%s%.*s", here, here[0] ? "/" : "", (int)length,
			     path) >= PATH_MAX - 64)
		return errbuf_set(err, -ENAMETOOLONG,
				  "The path of the recording, %.200s..., is too "
				  "long",
				  path);
	return 0;
}

int directory_create(const char *path, struct directory *ret_directory, struct errbuf *err)
{
	struct directory made = {.fd = -1, .ust_fd = -1};
	int code = absolute(path, made.path, err);

	if (code)
		return code;
	code = make_way(made.path, &made.moved, err);
	if (code)
		return code;
	if (mkdir(made.path, 0777) && errno != EEXIST)
		return errbuf_set(
			err, -errno,
			"Cannot make the recording's directory %s: %s; name another place "
			"with -o",
			path, strerror(errno));
	made.fd = open(made.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (made.fd < 0 || mkdirat(made.fd, "ust", 0777) ||
	    (made.ust_fd = openat(made.fd, "ust", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
		code = -errno;
		directory_close(&made);
		return errbuf_set(err, code,
				  "Cannot write to the recording's directory %s: %s; name "
				  "another place with -o",
				  path, strerror(-code));
	}
	*ret_directory = made;
	return 0;
}

void directory_discard(struct directory *directory)
{
	char old[PATH_MAX + 8];

	directory_close(directory);
	remove_recording(directory->path);
	snprintf(old, sizeof(old), "%s.old", directory->path);
	if (directory->moved)
		rename(old, directory->path);
}

void directory_close(struct directory *directory)
{
	if (directory->ust_fd >= 0)
		close(directory->ust_fd);
	if (directory->fd >= 0)
		close(directory->fd);
	directory->fd = directory->ust_fd = -1;
}
