/* SPDX-License-Identifier: MIT */
/*
 * Every way to start a program.
 *   processes HOW VARIANT COMMAND...   HOW: here, fork, _Fork, raw, vfork, spawn
 *   processes missing VARIANT FILE     execs that fail (FILE has no format), then work
 *   processes env                      prints what getenv, environ and envp show of us, and the
 * rest
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char **command;

static void burn(long us)
{
	struct timespec start, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000000 + (now.tv_nsec - start.tv_nsec) / 1000 < us);
}

static int run(const char *variant)
{
	const char *path = command[0];
	int fd;

	if (strcmp(variant, "execve") == 0)
		return execve(path, command, environ);
	if (strcmp(variant, "execv") == 0)
		return execv(path, command);
	if (strcmp(variant, "execvp") == 0)
		return execvp(path, command);
	if (strcmp(variant, "execvpe") == 0)
		return execvpe(path, command, environ);
	if (strcmp(variant, "execl") == 0)
		return execl(path, path, command[1], (char *)NULL);
	if (strcmp(variant, "execlp") == 0)
		return execlp(path, path, command[1], (char *)NULL);
	if (strcmp(variant, "execle") == 0)
		return execle(path, path, command[1], (char *)NULL, environ);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (strcmp(variant, "fexecve") == 0)
		return fexecve(fd, command, environ);
	if (strcmp(variant, "execveat") == 0)
		return execveat(fd, "", command, environ, AT_EMPTY_PATH);
	return -1;
}

static int wait_for(pid_t pid)
{
	int status;

	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
									       : 124;
}

static int spawn(const char *how)
{
	pid_t pid = -1;
	FILE *stream;
	int c;

	if (strcmp(how, "posix_spawn") == 0) {
		posix_spawn(&pid, command[0], NULL, NULL, command, environ);
		return wait_for(pid);
	}
	if (strcmp(how, "posix_spawnp") == 0) {
		posix_spawnp(&pid, command[0], NULL, NULL, command, environ);
		return wait_for(pid);
	}
	if (strcmp(how, "system") == 0)
		return WEXITSTATUS(system(command[0]));
	stream = popen(command[0], "r");
	while (stream != NULL && (c = fgetc(stream)) != EOF)
		putchar(c);
	return stream != NULL ? WEXITSTATUS(pclose(stream)) : 124;
}

static int print_environment(char **envp)
{
	char *preload = getenv("LD_PRELOAD");

	printf("getenv %s %s\n", preload != NULL ? preload : "-",
	       getenv("PATHPROF_RECORDING") != NULL ? "seen" : "-");
	for (; *envp != NULL; envp++)
		puts(*envp);
	return 0;
}

/* Execs that fail, each with its errno; then work that must be recorded as before. */
static int missing(const char *variant, char *no_format)
{
	static char *nothing[] = {"/nonexistent/program", "a", "b", NULL};
	char *garbage[] = {no_format, "a", "b", NULL};

	for (int i = 0; i < 20; i++) {
		command = nothing;
		if (run(variant) != -1 || (errno != ENOENT && errno != EINVAL))
			return 1;
		command = garbage;
		if (run(variant) != -1 || errno != ENOEXEC)
			return 2;
	}
	for (int i = 0; i < 50; i++) { /* CPU time, and page faults */
		char *block = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		memset(block, i, 1 << 20);
		burn(5000);
		munmap(block, 1 << 20);
	}
	return getenv("PATHPROF_RECORDING") != NULL ? 3 : 9;
}

int main(int argc, char **argv, char **envp)
{
	pid_t pid;

	if (argc == 2 && strcmp(argv[1], "env") == 0)
		return print_environment(envp);
	if (argc < 3)
		return 125;
	if (strcmp(argv[1], "missing") == 0)
		return missing(argv[2], argv[3]);
	command = argv + 3;
	if (strcmp(argv[1], "here") == 0)
		return run(argv[2]) == -1 ? 126 : 0;
	if (strcmp(argv[1], "spawn") == 0)
		return spawn(argv[2]);
	fflush(stdout);
	if (strcmp(argv[1], "fork") == 0)
		pid = fork();
	else if (strcmp(argv[1], "_Fork") == 0)
		pid = _Fork();
	else if (strcmp(argv[1], "raw") == 0)
		pid = (pid_t)syscall(SYS_clone, 17L /* SIGCHLD */, 0L, 0L, 0L, 0L);
	else
		pid = vfork();
	if (pid == 0) {
		if (strcmp(argv[1], "vfork") != 0)
			burn(100000); /* ticks here would be wrong */
		run(argv[2]);
		_exit(126);
	}
	return wait_for(pid);
}
