/* SPDX-License-Identifier: MIT */
/*
 * Replacing the image. In libc each of these calls the kernel by itself, so each has a wrapper.
 *
 *   recorded process   our variables go into the new image's environment; events that might
 *                      still deliver are disabled (a queued SIGTRAP would kill the new image),
 *                      or, where the recorder has no turn, what they send is ignored; signals
 *                      that the program ignores are ignored in the kernel too. All of it is
 *                      undone where the exec fails, and recording goes on.
 *   fork, vfork child  the environment as it is; listed; the ignored signals as above
 *   else               straight through
 *
 * In a vfork child nothing is allocated or locked: the environment is only ever built in the
 * recorded process itself. Nothing is added where the agent's file cannot be opened (the loader
 * would complain), nor for a program that is set-uid, set-gid or has capabilities (the loader would
 * drop one variable and leave the other).
 *
 * Events that the recorder did not disable in time end with the image (remove_on_exec), but what
 * they send until then is as deadly. A perf event's SIGTRAP is sent, not forced: while the kernel
 * has it ignored none is queued, and what was queued is dropped. Exec keeps that, so the new
 * image's agent is told to set the default again (environment.c); where there is none, SIGTRAP
 * stays ignored.
 */
#include "agent/guard/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define ARM_EXEC_WAIT_NS  100000000ull /* for the recorder to disable or enable all events */
#define ARGUMENTS_MAX	  (1 << 20)    /* of execl and kin: above the kernel's own bound */
#define PATH_ELEMENTS_MAX 256 /* directories of PATH that are looked at for a set-uid program */

/* What was done before an exec, to be undone where it fails. */
struct exec_plan {
	bool recorded; /* this is the recorded process */
	bool child;    /* a fork or vfork child of it */
	struct exec_environment environment;
	struct slot *disabled; /* asked to disable the events of the process */
	bool trap_ignored;     /* they may not be: nothing may come of them */
};

/* ---- may the target have our variables? ---- */

static bool has_privileges(const struct stat *file)
{
	return (file->st_mode & S_ISUID) ||
	       (file->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
}

static bool path_takes_environment(const char *path)
{
	struct stat file;

	return stat(path, &file) == 0 && !has_privileges(&file) &&
	       getxattr(path, "security.capability", NULL, 0) <= 0;
}

static bool fd_takes_environment(int fd)
{
	struct stat file;

	return fstat(fd, &file) == 0 && !has_privileges(&file) &&
	       fgetxattr(fd, "security.capability", NULL, 0) <= 0;
}

static bool is_executable(const char *path)
{
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0;
}

/* As execvp() searches: the first executable of PATH. False: none, or a bound was passed. */
static bool search_path(const char *file, char *found, size_t found_bytes)
{
	const char *path = getenv("PATH");
	size_t file_bytes = strlen(file) + 1;

	if (strchr(file, '/') != NULL || path == NULL)
		path = ""; /* as it is; the default PATH has no privileged place of its own */
	for (int i = 0; i < PATH_ELEMENTS_MAX; i++) {
		size_t length = strcspn(path, ":");
		size_t slash = length != 0;

		if (length + slash + file_bytes <= found_bytes) {
			memcpy(found, path, length);
			found[length] = '/';
			memcpy(found + length + slash, file, file_bytes);
			if (is_executable(found))
				return true;
		}
		if (path[length] == '\0')
			return false;
		path += length + 1;
	}
	return false;
}

static bool agent_is_readable(void)
{
	return agent.environment.preload[0] != '\0' &&
	       faccessat(AT_FDCWD, agent.environment.preload, R_OK, AT_EACCESS) == 0;
}

/* ---- the events of the process: the protocol of memory_types.h ---- */

static bool ask_to_disable(struct slot *slot)
{
	uint32_t armed = ARM_ARMED;

	return atomic_compare_exchange_strong_explicit(&slot->arming, &armed, ARM_DISABLE,
						       memory_order_acq_rel, memory_order_relaxed);
}

/* The calling thread's slot, or another of this process: any speaks for all events. */
static struct slot *ask_to_disable_any(void)
{
	struct memory *memory = &agent.capture.memory;
	struct slot *slot = NULL;

	if (agent_slot != NULL && ask_to_disable(agent_slot))
		slot = agent_slot;
	for (uint32_t i = 0; slot == NULL && i < memory->header->sizes.nr_slots; i++)
		if (atomic_load_explicit(&memory->slots[i].state, memory_order_acquire) ==
			    SLOT_ACTIVE &&
		    memory->slots[i].pid == agent.pid && ask_to_disable(&memory->slots[i]))
			slot = &memory->slots[i];
	return slot;
}

static void disable_events(struct exec_plan *plan)
{
	bool traps = agent_has_source(TRIGGER_PERF_SIGTRAP);
	uint32_t state = ARM_NONE;

	if (!traps && !agent_has_source(TRIGGER_PERF_ASYNC))
		return;
	plan->disabled = ask_to_disable_any();
	if (plan->disabled != NULL) {
		memory_ring(&agent.capture.memory);
		state = agent_futex_wait(&plan->disabled->arming, ARM_DISABLE, ARM_EXEC_WAIT_NS);
	}
	plan->trap_ignored = traps && state != ARM_DISABLED;
}

static void enable_events(struct slot *slot)
{
	atomic_store_explicit(&slot->arming, ARM_ENABLE, memory_order_release);
	memory_ring(&agent.capture.memory);
	agent_futex_wait(&slot->arming, ARM_ENABLE, ARM_EXEC_WAIT_NS);
}

/* ---- before and after ---- */

/* Is SIGTRAP ignored by us alone, so that the new image has to set it back? */
static bool restores_trap(const struct exec_plan *plan)
{
	return plan->trap_ignored && !dispositions_ignored(SIGTRAP);
}

/* Returns the environment to exec with: @envp, or one with our variables. */
static char *const *exec_begin(struct exec_plan *plan, const char *command, bool takes_environment,
			       char *const envp[])
{
	static char *const nothing[] = {NULL};
	int saved_errno = errno;

	*plan = (struct exec_plan){.recorded = agent_is_recorded_process()};
	plan->child = !plan->recorded && agent_mode() != AGENT_INERT;
	if (plan->child && takes_environment)
		agent_list_process(PROCESS_EXECED, (uint32_t)getpid(), (uint32_t)getppid(),
				   command);
	if (plan->recorded)
		disable_events(plan);
	if (plan->recorded && takes_environment && agent_is_readable() &&
	    environment_for_exec(envp != NULL ? envp : nothing, restores_trap(plan),
				 &plan->environment) == 0)
		envp = plan->environment.envp;
	if (plan->recorded || plan->child) {
		masks_to_kernel();
		dispositions_before_exec(plan->trap_ignored);
	}
	errno = saved_errno;
	return envp;
}

/* The exec came back: returns -1 with its errno, as the wrapper will. */
static int exec_failed(struct exec_plan *plan)
{
	int saved_errno = errno;

	if (plan->recorded || plan->child) {
		dispositions_exec_failed(plan->trap_ignored);
		masks_exec_failed();
	}
	if (plan->disabled != NULL)
		enable_events(plan->disabled);
	environment_release(&plan->environment);
	errno = saved_errno;
	return -1;
}

static int exec_path(const char *path, char *const argv[], char *const envp[])
{
	struct exec_plan plan;

	/* A search along PATH comes here once for each directory: say nothing, build nothing. */
	if (agent_mode() == AGENT_INERT || !is_executable(path))
		return libc_next()->execve(path, argv, envp);
	envp = exec_begin(&plan, path, path_takes_environment(path), envp);
	libc_next()->execve(path, argv, envp);
	return exec_failed(&plan);
}

static int exec_file(const char *file, char *const argv[], char *const envp[])
{
	struct exec_plan plan;
	char found[PATH_MAX];

	if (agent_mode() == AGENT_INERT || !search_path(file, found, sizeof(found)))
		return libc_next()->execvpe(file, argv, envp);
	envp = exec_begin(&plan, found, path_takes_environment(found), envp);
	libc_next()->execvpe(file, argv, envp);
	return exec_failed(&plan);
}

WRAPPER int execve(const char *path, char *const argv[], char *const envp[])
{
	return exec_path(path, argv, envp);
}

WRAPPER int execv(const char *path, char *const argv[])
{
	return exec_path(path, argv, environ);
}

WRAPPER int execvpe(const char *file, char *const argv[], char *const envp[])
{
	return exec_file(file, argv, envp);
}

WRAPPER int execvp(const char *file, char *const argv[])
{
	return exec_file(file, argv, environ);
}

static const char *first_argument(char *const argv[])
{
	return argv != NULL && argv[0] != NULL ? argv[0] : "";
}

WRAPPER int fexecve(int fd, char *const argv[], char *const envp[])
{
	struct exec_plan plan;

	if (agent_mode() == AGENT_INERT)
		return libc_next()->fexecve(fd, argv, envp);
	envp = exec_begin(&plan, first_argument(argv), fd_takes_environment(fd), envp);
	libc_next()->fexecve(fd, argv, envp);
	return exec_failed(&plan);
}

WRAPPER int execveat(int directory_fd, const char *path, char *const argv[], char *const envp[],
		     int flags)
{
	struct exec_plan plan;
	struct stat file;
	bool takes;

	if (agent_mode() == AGENT_INERT)
		return libc_next()->execveat(directory_fd, path, argv, envp, flags);
	if (path[0] == '\0')
		takes = fd_takes_environment(directory_fd);
	else /* capabilities of a file that only the directory names are not looked for */
		takes = fstatat(directory_fd, path, &file, flags & AT_SYMLINK_NOFOLLOW) == 0 &&
			!has_privileges(&file);
	envp = exec_begin(&plan, path, takes, envp);
	libc_next()->execveat(directory_fd, path, argv, envp, flags);
	return exec_failed(&plan);
}

/* ---- argument lists: on the stack, as libc has them ---- */

/* The number of arguments, without the NULL; -1: too many. */
static int count_arguments(const char *first, va_list arguments)
{
	int n = 0;

	for (const char *a = first; a != NULL; a = va_arg(arguments, const char *))
		if (n++ == ARGUMENTS_MAX)
			return -1;
	return n;
}

enum exec_variant {
	EXEC_L,
	EXEC_LP,
	EXEC_LE,
};

static int exec_list(enum exec_variant variant, const char *target, const char *first,
		     va_list arguments)
{
	char *const *envp = environ;
	va_list counted;
	char **argv;
	int n;

	va_copy(counted, arguments);
	n = count_arguments(first, counted);
	va_end(counted);
	if (n < 0) {
		errno = E2BIG;
		return -1;
	}
	argv = __builtin_alloca(((size_t)n + 1) * sizeof(*argv));
	argv[0] = (char *)first;
	for (int i = 1; i <= n; i++)
		argv[i] = va_arg(arguments, char *);
	if (variant == EXEC_LE)
		envp = va_arg(arguments, char *const *);
	return variant == EXEC_LP ? exec_file(target, argv, envp) : exec_path(target, argv, envp);
}

WRAPPER int execl(const char *path, const char *argument, ...)
{
	va_list arguments;
	int r;

	va_start(arguments, argument);
	r = exec_list(EXEC_L, path, argument, arguments);
	va_end(arguments);
	return r;
}

WRAPPER int execlp(const char *file, const char *argument, ...)
{
	va_list arguments;
	int r;

	va_start(arguments, argument);
	r = exec_list(EXEC_LP, file, argument, arguments);
	va_end(arguments);
	return r;
}

WRAPPER int execle(const char *path, const char *argument, ...)
{
	va_list arguments;
	int r;

	va_start(arguments, argument);
	r = exec_list(EXEC_LE, path, argument, arguments);
	va_end(arguments);
	return r;
}
