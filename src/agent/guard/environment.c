/* SPDX-License-Identifier: MIT */
/*
 * Our variables leave the program's environment before anybody can see them, and come back
 * for the image that replaces it.
 *
 *   LD_PRELOAD=/lib/libpathprof-agent.so:theirs.so   ->  LD_PRELOAD=theirs.so
 *   LD_PRELOAD=/lib/libpathprof-agent.so             ->  gone
 *   PATHPROF_RECORDING=...                           ->  gone
 *   PATHPROF_SIGTRAP=default                         ->  gone, and done (exec.c)
 *
 * The constructor runs first of all (the library is linked -z initfirst): before libc's own, so
 * nothing may be called there but syscall(), and getenv() would crash. It edits the envp array and
 * the one string in place. What it cannot hide is /proc/self/environ, which still shows
 * PATHPROF_RECORDING, and the auxiliary vector that a program looks for behind envp's NULL: it
 * finds an empty one (getauxval does not look there; Go falls back to /proc/self/auxv).
 */
#include "agent/guard/agent.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/guard/handshake.h"

#define PRELOAD_NAME	 "LD_PRELOAD="
#define RECORDING_NAME	 HANDSHAKE_VARIABLE "="
#define TRAP_NAME	 HANDSHAKE_TRAP "="
#define EXEC_OURS_MAX	 3	    /* what we add to an environment */
#define EXEC_ENTRIES_MAX (1u << 20) /* the kernel takes 6 MiB of pointers and strings at most */

/* The value of @entry if it is @name ("NAME="), else NULL. */
static inline char *value_of(char *entry, const char *name)
{
	while (*name != '\0' && *entry == *name) {
		entry++;
		name++;
	}
	return *name == '\0' ? entry : NULL;
}

/* As strlcpy() into a zeroed buffer; leaves it empty where it does not fit. */
static inline void keep(char *to, size_t bytes, const char *from, size_t length)
{
	if (length >= bytes)
		return;
	for (size_t i = 0; i < length; i++)
		((volatile char *)to)[i] = from[i];
}

static inline size_t length_until(const char *text, char end1, char end2)
{
	size_t length = 0;

	while (text[length] != '\0' && text[length] != end1 && text[length] != end2)
		length++;
	return length;
}

/* Takes our part out of the value of LD_PRELOAD; false: nothing else was in it. */
static inline bool take_preload(char *value)
{
	size_t ours = length_until(value, ':', ' ');
	size_t i;

	keep(agent.environment.preload, sizeof(agent.environment.preload), value, ours);
	if (value[ours] == '\0')
		return false;
	for (i = ours + 1; value[i] != '\0'; i++)
		((volatile char *)value)[i - ours - 1] = value[i];
	for (i -= ours + 1; value[i] != '\0'; i++)
		((volatile char *)value)[i] = '\0';
	return true;
}

static inline bool has_recording(char **envp)
{
	for (; *envp != NULL; envp++)
		if (value_of(*envp, RECORDING_NAME) != NULL)
			return true;
	return false;
}

/* One that is pending, blocked, was an event's: to ignore the signal once more drops it. */
static inline void restore_trap(void)
{
	const struct kernel_sigaction by_default = {0};
	struct kernel_sigaction ignored = {0};

	ignored.handler = (void (*)(int, siginfo_t *, void *))(uintptr_t)SIG_IGN;
	syscall(SYS_rt_sigaction, SIGTRAP, &ignored, NULL, sizeof(ignored.mask));
	syscall(SYS_rt_sigaction, SIGTRAP, &by_default, NULL, sizeof(by_default.mask));
}

__attribute__((constructor)) static void environment_take(int argc, char **argv, char **envp)
{
	char **to = envp;
	char *value;

	(void)argc;
	(void)argv;
	if (!has_recording(envp))
		return; /* preloaded by somebody else */
	for (char **from = envp; *from != NULL; from++) {
		value = value_of(*from, RECORDING_NAME);
		if (value != NULL) {
			keep(agent.environment.recording, sizeof(agent.environment.recording),
			     value, length_until(value, '\0', '\0'));
			continue;
		}
		if (value_of(*from, TRAP_NAME) != NULL) {
			restore_trap();
			continue;
		}
		value = value_of(*from, PRELOAD_NAME);
		if (value != NULL && !take_preload(value))
			continue;
		*to++ = *from;
	}
	*to = NULL;
}

/* The room was measured before. Returns where the terminating NUL is. */
static char *append(char *to, const char *text)
{
	size_t length = strlen(text);

	memcpy(to, text, length + 1);
	return to + length;
}

int environment_for_exec(char *const envp[], bool restore_trap,
			 struct exec_environment *ret_environment)
{
	const struct agent_environment *ours = &agent.environment;
	const char *theirs = NULL;
	size_t entries = 0, bytes, strings;
	char *text;
	void *area;
	size_t to = 0;

	for (; envp[entries] != NULL; entries++) {
		if (entries == EXEC_ENTRIES_MAX)
			return -E2BIG;
		if (strncmp(envp[entries], PRELOAD_NAME, strlen(PRELOAD_NAME)) == 0)
			theirs = envp[entries] + strlen(PRELOAD_NAME);
	}
	strings = strlen(PRELOAD_NAME) + strlen(ours->preload) + 1 +
		  (theirs != NULL ? strlen(theirs) : 0) + 1 + strlen(RECORDING_NAME) +
		  strlen(ours->recording) + 1;
	bytes = (entries + EXEC_OURS_MAX + 1) * sizeof(char *) + strings;
	area = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		return -errno;

	ret_environment->area = area;
	ret_environment->area_bytes = bytes;
	ret_environment->envp = area;
	text = (char *)area + (entries + EXEC_OURS_MAX + 1) * sizeof(char *);
	ret_environment->envp[to++] = text;
	text = append(append(text, PRELOAD_NAME), ours->preload);
	if (theirs != NULL && *theirs != '\0')
		text = append(append(text, ":"), theirs);
	text++;
	ret_environment->envp[to++] = text;
	append(append(text, RECORDING_NAME), ours->recording);
	if (restore_trap)
		ret_environment->envp[to++] = (char *)TRAP_NAME "default";
	for (size_t from = 0; from < entries; from++)
		if (strncmp(envp[from], PRELOAD_NAME, strlen(PRELOAD_NAME)) != 0)
			ret_environment->envp[to++] = envp[from];
	ret_environment->envp[to] = NULL;
	return 0;
}

void environment_release(struct exec_environment *environment)
{
	if (environment->area != NULL)
		munmap(environment->area, environment->area_bytes);
	environment->area = NULL;
}
