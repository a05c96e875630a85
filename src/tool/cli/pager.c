/* SPDX-License-Identifier: MIT */
#include "tool/cli/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where less is not installed, the output is shown as it is. */
static const char default_pager[] = "if command -v less >/dev/null; then exec less; fi; exec cat";

static const char *choose_pager(const struct common_options *common)
{
	const char *pager = getenv("PATHPROF_PAGER");

	if (common->no_pager || !isatty(STDOUT_FILENO))
		return NULL;
	if (!pager)
		pager = getenv("PAGER");
	if (!pager)
		return default_pager;
	return *pager && strcmp(pager, "cat") != 0 ? pager : NULL;
}

static void run_pager(const char *command, const int *ends)
{
	/* F: leave at once what fits the screen; R: colours; X: stay on the screen. */
	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	if (dup2(ends[0], STDIN_FILENO) >= 0)
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

void pager_start(struct pager *pager, const struct common_options *common)
{
	const char *command = choose_pager(common);
	int ends[2];

	pager->pid = 0;
	if (!command || pipe2(ends, O_CLOEXEC) < 0)
		return;
	fflush(stdout);
	pager->command = command;
	pager->screen = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (pager->screen >= 0)
		pager->pid = fork();
	if (pager->pid == 0 && pager->screen >= 0)
		run_pager(command, ends);
	if (pager->pid > 0 && dup2(ends[1], STDOUT_FILENO) >= 0)
		signal(SIGPIPE, SIG_IGN); /* a reader who leaves early ends no report badly */
	else
		pager->pid = 0;
	if (!pager->pid && pager->screen >= 0)
		close(pager->screen);
	close(ends[0]);
	close(ends[1]);
}

/* What shells say of a command that is not there, or that nobody may run. */
static bool was_run(int status)
{
	return !WIFEXITED(status) || (WEXITSTATUS(status) != 127 && WEXITSTATUS(status) != 126);
}

bool pager_finish(struct pager *pager)
{
	int status = 0;
	bool ran;

	if (!pager->pid)
		return true;
	fflush(stdout);
	clearerr(stdout);
	/* The pipe ends here, and with it the input of the pager; what comes later has no place. */
	close(STDOUT_FILENO);
	/* ^C is for the pager now; dying of it would leave the terminal to two readers. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	while (waitpid(pager->pid, &status, 0) < 0 && errno == EINTR)
		;
	pager->pid = 0;
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	ran = was_run(status) || dup2(pager->screen, STDOUT_FILENO) < 0;
	close(pager->screen);
	return ran;
}
