/* SPDX-License-Identifier: MIT */
/*
 * Where perf events are refused (seccomp, kernel.perf_event_paranoid above 2) /proc says enough:
 * task/TID/schedstat counts the turns that the thread had on a CPU, task/TID/syscall says whether
 * it is blocked. Blocked before and after, with the same number of turns: it stood still.
 */
#include "tool/reader/standing.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* "cpu_ns wait_ns turns" */
static bool read_turns(pid_t pid, uint32_t tid, uint64_t *ret_turns)
{
	char text[128], *at = text;
	ssize_t length;
	int fd;

	snprintf(text, sizeof(text), "/proc/%d/task/%u/schedstat", pid, tid);
	fd = open(text, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		return false;
	text[length] = 0;
	strtoull(at, &at, 10);
	strtoull(at, &at, 10);
	*ret_turns = strtoull(at, NULL, 10);
	return true;
}

bool standing_read(pid_t pid, uint32_t tid, const struct lock_place *lock,
		   struct standing *ret_standing)
{
	uint64_t turns, futex;

	if (!read_turns(pid, tid, &turns))
		return false;
	ret_standing->turns = turns;
	ret_standing->stance = wait_kind_read(pid, tid, lock, &futex);
	return true;
}

bool standing_threads(pid_t pid, void (*each)(void *user, uint32_t tid), void *user)
{
	struct dirent *entry;
	char path[64];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	if (!tasks)
		return false;
	while ((entry = readdir(tasks))) {
		uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);

		if (tid)
			each(user, tid);
	}
	closedir(tasks);
	return true;
}
