/* SPDX-License-Identifier: MIT */
/*
 * Overflow signals of a hardware counter without pathprof: what this kernel and this counter do.
 *
 * Usage: reference sigtrap|async thread|inherit PERIOD WORK THREADS
 *
 * THREADS threads run WORK rounds of a loop each, one after another, with the processor's cycles
 * counted in user mode. Prints one line for each: the counter at its end, the overflows that must
 * have come with that count, and the signals that came; inherited: one line for all of them.
 * The async way is the paper's: O_ASYNC to the thread, one shot, armed again by the handler.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool by_signal, inherited;
static uint64_t period, work;
static _Thread_local int event = -1;
static _Thread_local uint64_t own_signals;
static _Atomic uint64_t all_signals;

static void on_overflow(int signo, siginfo_t *info, void *context)
{
	(void)signo, (void)info, (void)context;
	own_signals++;
	all_signals++;
	if (by_signal)
		ioctl(event, PERF_EVENT_IOC_REFRESH, 1);
}

static void die(const char *what)
{
	fprintf(stderr, "reference: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int open_event(void)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
				       .type = PERF_TYPE_HARDWARE,
				       .config = PERF_COUNT_HW_CPU_CYCLES,
				       .sample_period = period,
				       .disabled = 1,
				       .exclude_kernel = 1,
				       .exclude_hv = 1,
				       .inherit = inherited,
				       .inherit_thread = inherited,
				       .sigtrap = !by_signal,
				       .remove_on_exec = !by_signal,
				       .wakeup_events = 1};
	struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = gettid()};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		die("perf_event_open");
	if (by_signal &&
	    (fcntl(fd, F_SETSIG, SIGRTMIN + 5) < 0 || fcntl(fd, F_SETOWN_EX, &owner) < 0 ||
	     fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC) < 0))
		die("fcntl");
	return fd;
}

static void arm(void)
{
	event = open_event();
	if (by_signal && ioctl(event, PERF_EVENT_IOC_REFRESH, 1) < 0)
		die("IOC_REFRESH");
	if (!by_signal && ioctl(event, PERF_EVENT_IOC_ENABLE, 0) < 0)
		die("IOC_ENABLE");
}

static void tell(uint64_t signals)
{
	uint64_t count = 0;

	if (ioctl(event, PERF_EVENT_IOC_DISABLE, 0) < 0 ||
	    read(event, &count, sizeof(count)) != sizeof(count))
		die("read");
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", count, count / period, signals);
	close(event);
}

static void spin(void)
{
	for (volatile uint64_t i = 0; i < work; i++)
		;
}

static void *thread(void *unused)
{
	(void)unused;
	if (!inherited)
		arm();
	spin();
	if (!inherited)
		tell(own_signals);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_sigaction = on_overflow,
				   .sa_flags = SA_SIGINFO | SA_RESTART};
	long threads;

	if (argc != 6)
		return 2;
	by_signal = !strcmp(argv[1], "async");
	inherited = !strcmp(argv[2], "inherit");
	period = strtoull(argv[3], NULL, 10);
	work = strtoull(argv[4], NULL, 10);
	threads = strtol(argv[5], NULL, 10);
	sigaction(SIGTRAP, &action, NULL);
	sigaction(SIGRTMIN + 5, &action, NULL);
	if (inherited)
		arm();
	for (long i = 0; i < threads; i++) {
		pthread_t id;

		if (pthread_create(&id, NULL, thread, NULL) || pthread_join(id, NULL))
			die("pthread_create");
	}
	if (inherited)
		tell(all_signals);
	return 0;
}
