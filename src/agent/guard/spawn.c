/* SPDX-License-Identifier: MIT */
/*
 * Children that libc itself starts: listed, else left alone.
 *
 * They inherit the program's environment, which never holds our variables, and the child between
 * fork and exec has no timer and no event. One thing differs from a run without us: where the
 * program ignores SIGSEGV, SIGBUS or SIGTRAP, such a child starts with the default action.
 */
#include "agent/guard/agent.h"

#include <string.h>

/* system(), popen() and wordexp() do not say whom they start. */
static void list(pid_t pid, const char *command)
{
	if (agent_mode() != AGENT_INERT)
		agent_list_process(PROCESS_SPAWNED, (uint32_t)pid, (uint32_t)getpid(), command);
}

WRAPPER int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
			const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
	pid_t child;
	int r;

	masks_to_kernel();
	r = libc_next()->posix_spawn(&child, path, actions, attributes, argv, envp);
	masks_exec_failed();

	if (r == 0) {
		list(child, path);
		if (pid != NULL)
			*pid = child;
	}
	return r;
}

WRAPPER int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
			 const posix_spawnattr_t *attributes, char *const argv[],
			 char *const envp[])
{
	pid_t child;
	int r;

	masks_to_kernel();
	r = libc_next()->posix_spawnp(&child, file, actions, attributes, argv, envp);
	masks_exec_failed();

	if (r == 0) {
		list(child, file);
		if (pid != NULL)
			*pid = child;
	}
	return r;
}

WRAPPER int system(const char *command)
{
	int r;

	if (command != NULL)
		list(0, command);
	masks_to_kernel();
	r = libc_next()->system(command);
	masks_exec_failed();
	return r;
}

WRAPPER FILE *popen(const char *command, const char *mode)
{
	FILE *stream;

	masks_to_kernel();
	stream = libc_next()->popen(command, mode);
	masks_exec_failed();
	if (stream != NULL)
		list(0, command);
	return stream;
}

/* A shell runs for a command substitution alone. */
WRAPPER int wordexp(const char *words, wordexp_t *expanded, int flags)
{
	int r;

	if (!(flags & WRDE_NOCMD) && (strstr(words, "$(") != NULL || strchr(words, '`') != NULL))
		list(0, words);
	masks_to_kernel();
	r = libc_next()->wordexp(words, expanded, flags);
	masks_exec_failed();
	return r;
}
