/* SPDX-License-Identifier: MIT */
/*
 * The recording's directory, and what to do with one that is there.
 *
 *   PATH is free, or an empty directory    made, or used
 *   PATH is a recording                    moved to PATH.old; a recording there is removed
 *   a recorder writes there                refused: both would lose
 *   anything else                          refused: nobody's files are moved or removed
 *
 * A recording is a directory whose manifest.json says so, or what is left of one: is_remnant().
 * Only names that a recording has are ever unlinked, and nothing before all were looked at: what
 * somebody put beside them stays, and so does the recording. Whoever writes a file of a recording
 * opens it by directory_open_file(), which knows the same names.
 */
#include "tool/recorder/recorder_types.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_TRIES	    1000 /* against readers, each of which takes microseconds */
#define MANIFEST_HEAD_BYTES 256	 /* the keys "version" and "pathprof" come first */

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
	snprintf(name, sizeof(name), "%s/" RECORDING_MANIFEST, path);
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

static bool is_one_of(const char *const *names, const char *name)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names != NULL;
}

static bool is_stream_name(const char *name)
{
	static const char stem[] = RECORDING_STREAM;
	size_t length = strlen(stem);

	return !strncmp(name, stem, length) && name[length] &&
	       !name[length + strspn(name + length, "0123456789")];
}

static bool is_top_name(const char *name)
{
	static const char *const names[] = {RECORDING_MANIFEST, RECORDING_MANIFEST_NEW,
					    RECORDING_SOCKET, NULL};

	return is_one_of(names, name);
}

static bool is_trace_name(const char *name)
{
	static const char *const names[] = {RECORDING_METADATA, RECORDING_DEFINITIONS,
					    RECORDING_WAITS, NULL};

	return is_one_of(names, name) || is_stream_name(name);
}

int directory_open_file(int folder_fd, const char *name, int flags)
{
	int fd;

	if (!is_top_name(name) && !is_trace_name(name))
		return -EINVAL;
	fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
	return fd < 0 ? -errno : fd;
}

/* A recording's two folders, open; fds are -1 where there is none. */
struct folders {
	int top, trace;
};

static void folders_close(struct folders *folders)
{
	if (folders->trace >= 0)
		close(folders->trace);
	if (folders->top >= 0)
		close(folders->top);
}

static int folders_open(const char *path, struct folders *ret_folders)
{
	struct folders folders = {.trace = -1};

	folders.top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (folders.top < 0)
		return -errno;
	folders.trace = openat(folders.top, RECORDING_TRACE,
			       O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (folders.trace < 0 && errno != ENOENT && errno != ENOTDIR && errno != ELOOP) {
		int code = -errno;

		close(folders.top);
		return code;
	}
	*ret_folders = folders;
	return 0;
}

/* Calls @each for the names in a folder until it returns an error, which is returned. */
static int walk(int fd, int (*each)(int fd, const char *name, void *user), void *user)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;
	int code = directory ? 0 : -errno;

	while (!code && (entry = readdir(directory))) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			code = each(fd, entry->d_name, user);
	}
	if (directory)
		closedir(directory);
	else if (copy >= 0)
		close(copy);
	return code;
}

/* What a walk looks for, and the first name that is none of it. */
struct inventory {
	bool (*is_ours)(const char *name);
	const char *folder; /* the one folder that there may be; NULL: none */
	char foreign[NAME_MAX + 1];
};

static int check_name(int fd, const char *name, void *user)
{
	struct inventory *inventory = user;
	bool folder = inventory->folder && !strcmp(name, inventory->folder);
	struct stat status;

	if (fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(status.st_mode) ? folder : inventory->is_ours(name))
		return 0;
	snprintf(inventory->foreign, sizeof(inventory->foreign), "%s", name);
	return -ENOTEMPTY;
}

/*
 * May all of it be removed? 0; -ENOTEMPTY: it holds what a recording does not, whose name comes
 * back; another negative errno. Nothing is changed.
 */
static int check_removable(const struct folders *folders, char ret_foreign[NAME_MAX + 1])
{
	struct inventory top = {.is_ours = is_top_name, .folder = RECORDING_TRACE};
	struct inventory trace = {.is_ours = is_trace_name};
	int code = walk(folders->top, check_name, &top);

	if (!code && folders->trace >= 0)
		code = walk(folders->trace, check_name, &trace);
	if (code == -ENOTEMPTY)
		memcpy(ret_foreign, top.foreign[0] ? top.foreign : trace.foreign, NAME_MAX + 1);
	if (!code &&
	    (faccessat(folders->top, ".", W_OK | X_OK, AT_EACCESS) ||
	     (folders->trace >= 0 && faccessat(folders->trace, ".", W_OK | X_OK, AT_EACCESS))))
		code = -errno;
	return code;
}

static int unlink_name(int fd, const char *name, void *user)
{
	bool (*is_ours)(const char *) = ((struct inventory *)user)->is_ours;

	return is_ours(name) && unlinkat(fd, name, 0) && errno != ENOENT ? -errno : 0;
}

/* The manifest last: until then it is a recording to the next one who looks. */
static int unlink_all(const struct folders *folders)
{
	struct inventory trace = {.is_ours = is_trace_name};
	int code = 0;

	if (folders->trace >= 0)
		code = walk(folders->trace, unlink_name, &trace);
	if (!code && folders->trace >= 0 && unlinkat(folders->top, RECORDING_TRACE, AT_REMOVEDIR))
		code = -errno;
	for (size_t i = 0; !code && i < 3; i++) {
		static const char *const names[] = {RECORDING_SOCKET, RECORDING_MANIFEST_NEW,
						    RECORDING_MANIFEST};

		if (unlinkat(folders->top, names[i], 0) && errno != ENOENT)
			code = -errno;
	}
	return code;
}

/*
 * The recorder holds this lock until all is written; the kernel takes it back from one that is
 * killed. Who reads a recording tries it for a moment, shared, which must not look like a recorder.
 * Returns 0, or -EBUSY; file systems that know no such locks have none.
 */
static int lock_directory(int fd)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
			return 0;
		if (flock(fd, LOCK_SH | LOCK_NB))
			return -EBUSY;
		flock(fd, LOCK_UN); /* only readers were there */
		sched_yield();
	}
	return -EBUSY;
}

/* Is it no recorder's now? It is nobody else's either while the descriptor that comes back is open.
 */
static int take_over(const char *path, int *ret_fd, struct errbuf *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (fd >= 0 && lock_directory(fd)) {
		close(fd);
		return errbuf_set(err, -EBUSY,
				  "%s is being recorded: wait for its end, or name another place "
				  "with -o",
				  path);
	}
	*ret_fd = fd; /* -1: what cannot be opened fails where it is used */
	return 0;
}

/* Remove all of it or, where something else is in it, nothing: then @ret_foreign is its name. */
static int remove_recording(const char *path, char ret_foreign[NAME_MAX + 1])
{
	struct folders folders;
	int code = folders_open(path, &folders);

	if (code)
		return code;
	code = check_removable(&folders, ret_foreign);
	if (!code)
		code = unlink_all(&folders);
	folders_close(&folders);
	return !code && rmdir(path) ? -errno : code;
}

/*
 * What is left where the recorder was killed before the manifest was there, or while it removed a
 * recording: ust/ with nothing but a recording's names, and no manifest.
 */
static bool is_remnant(const char *path)
{
	char foreign[NAME_MAX + 1];
	struct folders folders;
	struct stat status;
	bool remnant;

	if (folders_open(path, &folders))
		return false;
	remnant = folders.trace >= 0 && !check_removable(&folders, foreign) &&
		  fstatat(folders.top, RECORDING_MANIFEST, &status, AT_SYMLINK_NOFOLLOW);
	folders_close(&folders);
	return remnant;
}

static bool is_ours(const char *path)
{
	return is_recording(path) || is_remnant(path);
}

static int remove_older(const char *old, struct errbuf *err)
{
	char foreign[NAME_MAX + 1];
	int fd, code = take_over(old, &fd, err);

	if (code)
		return code;
	code = remove_recording(old, foreign);
	if (fd >= 0)
		close(fd);
	if (code == -ENOTEMPTY)
		return errbuf_set(err, code,
				  "Cannot remove the older recording %s: it holds '%s', which is "
				  "none of a recording's files; move it away or name another place "
				  "with -o",
				  old, foreign);
	if (code)
		return errbuf_set(err, code,
				  "Cannot remove the older recording %s: %s; name another place "
				  "with -o",
				  old, strerror(-code));
	return 0;
}

/* @path is ours, and nobody records there. */
static int move_away(const char *path, struct errbuf *err)
{
	char old[PATH_MAX + 8];
	struct stat status;
	int code;

	snprintf(old, sizeof(old), "%s.old", path);
	if (!lstat(old, &status)) {
		if (!is_ours(old) && !is_empty_directory(old))
			return errbuf_set(
				err, -EEXIST,
				"%s is to be moved to %s, which exists and is no recording of "
				"pathprof: name another place with -o",
				path, old);
		code = remove_older(old, err);
		if (code)
			return code;
	}
	if (rename(path, old))
		return errbuf_set(err, -errno, "Cannot move %s to %s: %s", path, old,
				  strerror(errno));
	return 0;
}

static int make_way(const char *path, bool *ret_moved, struct errbuf *err)
{
	struct stat status;
	int fd, code;

	if (lstat(path, &status) || is_empty_directory(path))
		return 0;
	if (!is_ours(path))
		return errbuf_set(
			err, -EEXIST,
			"%s exists and is no recording of pathprof: name another place with "
			"-o",
			path);
	code = take_over(path, &fd, err);
	if (code)
		return code;
	code = move_away(path, err);
	if (fd >= 0)
		close(fd);
	*ret_moved = !code;
	return code;
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
	code = take_over(made.path, &made.fd, err);
	if (code)
		return code;
	if (made.fd < 0 || mkdirat(made.fd, RECORDING_TRACE, 0777) ||
	    (made.ust_fd = openat(made.fd, RECORDING_TRACE, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) <
		    0) {
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
	char old[PATH_MAX + 8], foreign[NAME_MAX + 1];

	directory_close(directory);
	remove_recording(directory->path, foreign);
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
