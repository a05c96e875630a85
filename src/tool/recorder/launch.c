/* SPDX-License-Identifier: MIT */
/*
 * COMMAND: its environment, fork, exec, signals while it runs, its end.
 *
 * It runs in our process group, with the descriptors, limits, mask and dispositions that we were
 * given: ours are close-on-exec, the limits and the mask are put back between fork and exec, and
 * we change no disposition that it would inherit as ignored but two, put back as well.
 *
 * While it runs we take signals by a signalfd: SIGINT and SIGQUIT come from the terminal to the
 * whole group, so it has them already and we only stay alive to finish the recording; SIGTERM and
 * SIGHUP are passed on. A recorder that is stopped (Ctrl-Z) stops with it and goes on with it.
 */
#include "tool/recorder/recorder_types.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define NS_PER_S 1000000000ull
#define BEAT_MS	 1000 /* beats also while the service thread waits for a slow disk */

static void taken_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGQUIT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

int launch_signals(struct recorder *recorder)
{
	sigset_t set;

	taken_signals(&set);
	return -pthread_sigmask(SIG_BLOCK, &set, &recorder->inherited.mask);
}

/* The two variables of agent/guard/handshake.h. Only in the child, which has its own copy. */
static int set_environment(const struct recorder *recorder)
{
	const char *preload = getenv("LD_PRELOAD");
	char *value;
	int code;

	if (asprintf(&value, "%s%s%s", recorder->agent, preload && *preload ? ":" : "",
		     preload ? preload : "") < 0)
		return -ENOMEM;
	code = setenv("LD_PRELOAD", value, 1);
	free(value);
	if (code || asprintf(&value, "%s:%s:%s/socket", recorder->secret, recorder->abstract_name,
			     recorder->directory.path) < 0)
		return -ENOMEM;
	code = setenv(HANDSHAKE_VARIABLE, value, 1);
	free(value);
	unsetenv(AGENT_VARIABLE);
	return code ? -ENOMEM : 0;
}

static _Noreturn void child(const struct recorder *recorder, int error_fd)
{
	const struct inherited *before = &recorder->inherited;
	char **command = recorder->request->command;
	int error = 0;

	if (set_environment(recorder))
		error = ENOMEM;
	setrlimit(RLIMIT_NOFILE, &before->files);
	sigaction(SIGPIPE, &before->pipe, NULL);
	sigaction(SIGXFSZ, &before->file_size, NULL);
	sigprocmask(SIG_SETMASK, &before->mask, NULL);
	if (!error) {
		execvp(command[0], command);
		error = errno;
	}
	if (write(error_fd, &error, sizeof(error)) != sizeof(error))
		_exit(125);
	_exit(error == ENOENT ? 127 : 126);
}

void launch_prepare(struct recorder *recorder)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct inherited *before = &recorder->inherited;
	struct rlimit files;

	/* A perf event takes a descriptor a thread. */
	getrlimit(RLIMIT_NOFILE, &before->files);
	files = before->files;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	recorder->files_max = files.rlim_cur;
	sigaction(SIGPIPE, &ignore, &before->pipe);	 /* an agent that died while we reply */
	sigaction(SIGXFSZ, &ignore, &before->file_size); /* a full quota is a short write */
}

int launch(struct recorder *recorder, int *ret_not_run, struct errbuf *err)
{
	const char *name = recorder->request->command[0];
	int pipe_fds[2], error = 0;
	ssize_t length;
	pid_t pid;

	if (pipe2(pipe_fds, O_CLOEXEC))
		return errbuf_set(err, -errno, "Cannot make a pipe: %s", strerror(errno));
	pid = fork();
	if (pid == 0)
		child(recorder, pipe_fds[1]);
	if (pid < 0)
		error = errno;
	close(pipe_fds[1]);
	if (pid < 0) {
		close(pipe_fds[0]);
		return errbuf_set(err, -error, "Cannot fork: %s", strerror(error));
	}
	/* Known before the agent's hello can be read. */
	recorder->root_pid = pid;
	recorder->memory.header->root_pid = (uint32_t)pid;
	do
		length = read(pipe_fds[0], &error, sizeof(error));
	while (length < 0 && errno == EINTR);
	close(pipe_fds[0]);
	if (length != sizeof(error))
		return 0;
	waitpid(pid, NULL, 0);
	*ret_not_run = error == ENOENT ? 127 : 126;
	return errbuf_set(err, -error, "Cannot run '%s': %s", name, strerror(error));
}

static void take_signal(struct recorder *recorder, int fd)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGHUP)
		kill(recorder->root_pid, (int)info.ssi_signo);
}

/* --delay and --duration: the next turn of `recording`. */
static void set_timer(int fd, uint64_t ns)
{
	struct itimerspec when = {.it_value = {(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)}};

	timerfd_settime(fd, 0, &when, NULL);
}

static void turn(struct recorder *recorder, int fd)
{
	const struct record_request *request = recorder->request;
	uint64_t expirations;

	if (read(fd, &expirations, sizeof(expirations)) != sizeof(expirations))
		return;
	if (!recorder->window.begun) {
		window_begin(recorder);
		if (request->duration_ns)
			set_timer(fd, request->duration_ns);
		return;
	}
	window_end(recorder);
	if (request->tell)
		request->tell(request->user, "the duration is over: the recording is complete and "
					     "can be read; the program goes on");
}

static int start_timer(const struct recorder *recorder)
{
	const struct record_request *request = recorder->request;
	uint64_t first = request->delay_ns ? request->delay_ns : request->duration_ns;
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	if (fd >= 0 && first)
		set_timer(fd, first);
	return fd;
}

enum poll_place { POLL_PROCESS, POLL_SIGNALS, POLL_TIMER, POLL_ABSTRACT, POLL_PATH, POLL_MEETINGS };

static void serve(struct recorder *recorder, const struct pollfd *polled, unsigned int meetings)
{
	/* Backwards: a meeting that is over closes the gap with the last one. */
	for (unsigned int i = meetings; i-- > 0;) {
		if (polled[POLL_MEETINGS + i].revents)
			meet_hear(recorder, i);
	}
	if (polled[POLL_ABSTRACT].revents)
		meet_accept(recorder, polled[POLL_ABSTRACT].fd);
	if (polled[POLL_PATH].revents)
		meet_accept(recorder, polled[POLL_PATH].fd);
	if (polled[POLL_SIGNALS].revents)
		take_signal(recorder, polled[POLL_SIGNALS].fd);
	if (polled[POLL_TIMER].revents)
		turn(recorder, polled[POLL_TIMER].fd);
}

int launch_wait(struct recorder *recorder, struct errbuf *err)
{
	struct pollfd polled[POLL_MEETINGS + PENDING_MEETINGS];
	sigset_t set;

	taken_signals(&set);
	polled[POLL_PROCESS].fd = pidfd_open(recorder->root_pid, 0);
	if (polled[POLL_PROCESS].fd < 0)
		return errbuf_set(err, -errno,
				  "Cannot watch the program: pidfd_open: %s; Linux 5.3 "
				  "or later is needed",
				  strerror(errno));
	polled[POLL_SIGNALS].fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	polled[POLL_TIMER].fd = start_timer(recorder);
	polled[POLL_ABSTRACT].fd = recorder->listen_fds[0];
	polled[POLL_PATH].fd = recorder->listen_fds[1];
	for (int i = 0; i < POLL_MEETINGS + PENDING_MEETINGS; i++)
		polled[i].events = POLLIN;
	do {
		unsigned int meetings = recorder->nr_meetings;

		for (unsigned int i = 0; i < meetings; i++)
			polled[POLL_MEETINGS + i].fd = recorder->meeting_fds[i];
		if (poll(polled, POLL_MEETINGS + meetings, BEAT_MS) > 0)
			serve(recorder, polled, meetings);
		else
			polled[POLL_PROCESS].revents = 0;
		atomic_store(&recorder->memory.header->heartbeat_ns, now_ns());
	} while (!polled[POLL_PROCESS].revents);
	close(polled[POLL_PROCESS].fd);
	close(polled[POLL_SIGNALS].fd);
	close(polled[POLL_TIMER].fd);
	return 0;
}
