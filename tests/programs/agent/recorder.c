/* SPDX-License-Identifier: MIT */
/*
 * A recorder for tests of the agent: makes the memory, runs a program with the agent preloaded,
 * answers handshakes, arms perf events, and at the end prints as JSON what the memory holds.
 *
 *   agent-recorder [-r FILE] [-t TRIGGER] [-c PERIOD] [-j JITTER] [-p USER_PRELOAD] [-s SLOTS] [-x]
 * [-q] [-m] AGENT -- COMMAND... -r  where the JSON goes    -x  refuse everybody    -q  die at
 * SIGUSR1    -m  cpu-time as well -t  cpu: cpu-time by a timer    perf: page-faults    clock:
 * cpu-clock (period in ns) async: page-faults by signal    inherit: page-faults by one event for
 * all threads
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/guard/handshake.h"
#include "core/memory/memory.h"
#include "core/memory/perf_cookie.h"
#include "core/perf/perf.h"

#define SECRET		  "0123456789abcdef0123456789abcdef"
#define SLOTS_MAX	  4096
#define PROGRAM_BYTES_MAX (4ull << 30) /* a program that runs wild must not take the machine */

struct totals {
	uint64_t asked, counted, ended, with_cpu, samples, weight, overrun, cpu_ns,
		lost[NR_LOSS_REASONS];
};

static const char *option_result = "/dev/stdout", *option_trigger = "cpu", *option_preload;
static unsigned long option_period = 1000000, option_slots = 64, option_jitter;
static int option_refuse, option_both, option_orphan, option_clock, option_async, option_inherit;
static struct memory memory;
static int memory_fd, nr_hellos, event_fds[SLOTS_MAX];
static struct handshake_hello hellos[64];
static struct totals totals;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void fail(const char *what)
{
	perror(what);
	exit(125);
}

static void make_memory(void)
{
	struct memory_sizes sizes = memory_sizes_for(32u << 20);
	struct errbuf err = {{0}};
	struct memory_event *event;

	sizes.nr_slots = (uint32_t)option_slots;
	if (memory_create(&sizes, &memory, &memory_fd, &err) < 0)
		fail(err.text);
	event = memory.header->events;
	option_clock = strcmp(option_trigger, "clock") == 0;
	option_async = strcmp(option_trigger, "async") == 0;
	option_inherit = strcmp(option_trigger, "inherit") == 0;
	if (option_both || strcmp(option_trigger, "cpu") != 0) {
		*event = (struct memory_event){.period = option_period,
					       .trigger = option_async ? TRIGGER_PERF_ASYNC
								       : TRIGGER_PERF_SIGTRAP,
					       .inherited = (uint32_t)option_inherit,
					       .jitter = option_jitter};
		strcpy(event++->name, option_clock ? "cpu-clock" : "page-faults");
	}
	if (option_both || strcmp(option_trigger, "cpu") == 0)
		*event++ = (struct memory_event){.period = option_period > 1000 ? option_period
										: 1000000,
						 .trigger = TRIGGER_CPU_TIMER,
						 .name = "cpu-time"};
	memory.header->nr_events = (uint32_t)(event - memory.header->events);
	memory.header->tick_ns = 1000000;
	atomic_store(&memory.header->heartbeat_ns, now_ns());
	atomic_store(&memory.header->recording, 1);
}

static int listen_abstract(char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int n = sprintf(name, "pathprof-test-%d", getpid());

	memcpy(address.sun_path + 1, name, (size_t)n);
	if (bind(fd, (struct sockaddr *)&address,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) < 0 ||
	    listen(fd, 16) < 0)
		fail("listen");
	return fd;
}

static void meet(int listener)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS}};
	struct handshake_reply reply = {.magic = HANDSHAKE_MAGIC, .version = HANDSHAKE_VERSION};
	struct iovec part = {.iov_base = &reply, .iov_len = sizeof(reply)};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	struct handshake_hello hello;

	if (fd < 0 || recv(fd, &hello, sizeof(hello), 0) != (ssize_t)sizeof(hello) ||
	    memcmp(hello.secret, SECRET, sizeof(hello.secret)) != 0)
		fail("hello");
	reply.verdict = option_refuse || hello.pid != memory.header->root_pid ? HANDSHAKE_REFUSE
									      : HANDSHAKE_RECORD;
	if (reply.verdict == HANDSHAKE_RECORD) {
		memcpy(CMSG_DATA(&control.header), &memory_fd, sizeof(int));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control.bytes);
	}
	if (nr_hellos < 64)
		hellos[nr_hellos++] = hello;
	sendmsg(fd, &message, MSG_NOSIGNAL);
	close(fd);
}

/* Refused for page faults by the tool itself, whose re-arming may meet the same fault again. */
static int open_async(struct slot *slot)
{
	struct perf_sampling sampling = {.delivery = PERF_BY_SIGNAL,
					 .kind = {.type = PERF_TYPE_SOFTWARE,
						  .config = PERF_COUNT_SW_PAGE_FAULTS,
						  .exclude_kernel = true},
					 .period = memory.header->events[0].period,
					 .first_period = memory.header->events[0].period,
					 .signo = 33};
	int code;

	/* So that the agent has a first period to end. */
	if (sampling.period > 2) {
		sampling.first_period = sampling.period / 2;
		atomic_store(&slot->first_period, 1);
	}
	slot->first[0] = sampling.first_period;
	code = perf_open_sampling(&sampling, (pid_t)slot->tid, &slot->event_fds[0]);
	if (code) {
		errno = -code;
		return -1;
	}
	return slot->event_fds[0];
}

static int open_event(struct slot *slot, uint32_t index)
{
	struct perf_event_attr attr = {.size = sizeof(attr)};

	if (option_async)
		return open_async(slot);

	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = option_clock ? PERF_COUNT_SW_CPU_CLOCK : PERF_COUNT_SW_PAGE_FAULTS;
	attr.sample_period = memory.header->events[0].period;
	attr.exclude_kernel = !option_clock; /* as the recorder asks */
	attr.sigtrap = 1;
	attr.remove_on_exec = 1;
	attr.sig_data = perf_cookie(index, 0, slot->generation);
	if (option_inherit) {
		attr.sig_data = perf_cookie_inherited(0);
		attr.inherit = attr.inherit_thread = 1;
	}
	return (int)syscall(SYS_perf_event_open, &attr, slot->tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void answer(struct slot *slot, uint32_t state)
{
	atomic_store(&slot->arming, state);
	syscall(SYS_futex, &slot->arming, 1 /* FUTEX_WAKE */, 64, NULL, NULL, 0);
}

static void switch_events(unsigned long request)
{
	for (uint32_t i = 0; i < option_slots; i++)
		if (event_fds[i] > 0)
			ioctl(event_fds[i], request, 1);
}

static void serve_arming(struct slot *slot, uint32_t i)
{
	switch (atomic_load(&slot->arming)) {
	case ARM_REQUESTED:
	case ARM_LATE:
		totals.asked++;
		if (event_fds[i] > 0)
			close(event_fds[i]);
		event_fds[i] = open_event(slot, i);
		slot->arm_error = event_fds[i] < 0 ? -errno : 0;
		answer(slot, event_fds[i] < 0 ? ARM_REFUSED : ARM_ARMED);
		break;
	case ARM_DISABLE:
		switch_events(PERF_EVENT_IOC_DISABLE);
		answer(slot, ARM_DISABLED);
		break;
	case ARM_ENABLE:
		switch_events(option_async ? PERF_EVENT_IOC_REFRESH : PERF_EVENT_IOC_ENABLE);
		answer(slot, ARM_ARMED);
		break;
	default:
		break;
	}
}

static void add_up(struct slot *slot)
{
	uint32_t index = slot_index(&memory, slot);
	uint64_t count;

	if (event_fds[index] > 0 && !perf_count(event_fds[index], &count))
		totals.counted += count;
	for (int i = 0; i < NR_LOSS_REASONS; i++)
		totals.lost[i] += atomic_load(&slot->lost[i]);
	for (int i = 0; i < EVENTS_MAX; i++) {
		totals.samples += atomic_load(&slot->samples[i]);
		totals.weight += atomic_load(&slot->weight[i]);
	}
	totals.overrun += atomic_load(&slot->overrun);
	totals.cpu_ns += slot->cpu_ns;
}

static void serve(void)
{
	static uint32_t full[65536];
	uint32_t n = memory_take_full(&memory, full);

	for (uint32_t i = 0; i < n; i++)
		packet_free(&memory, full[i]);
	for (uint32_t i = 0; i < option_slots; i++) {
		struct slot *slot = &memory.slots[i];

		if (atomic_load(&slot->state) == SLOT_ACTIVE)
			serve_arming(slot, i);
		if (atomic_load(&slot->state) != SLOT_ENDED)
			continue;
		add_up(slot);
		totals.ended++;
		totals.with_cpu += slot->cpu_ns != 0;
		if (event_fds[i] > 0)
			close(event_fds[i]);
		event_fds[i] = 0;
		if (slot_open_packet(&memory, slot) != NULL)
			packet_free(&memory,
				    packet_index(&memory, slot_open_packet(&memory, slot)));
		slot->packet = 0;
		slot_free(&memory, slot);
	}
}

static pid_t launch(const char *agent, char **argv, const char *socket_name)
{
	char preload[4096], recording[512];
	int gate[2];
	pid_t pid;
	char byte;

	snprintf(preload, sizeof(preload), "%s%s%s", agent, option_preload ? ":" : "",
		 option_preload ? option_preload : "");
	snprintf(recording, sizeof(recording), "%s:%s:/nonexistent:path", SECRET, socket_name);
	if (pipe(gate) < 0)
		fail("pipe");
	pid = fork();
	if (pid == 0) {
		close(gate[1]);
		/* A test that times out kills us: the program must not live on. */
		if (!option_orphan)
			prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (read(gate[0], &byte, 1) != 1)
			_exit(125);
		close(gate[0]);
		setenv("LD_PRELOAD", preload, 1);
		setenv(HANDSHAKE_VARIABLE, recording, 1);
		setrlimit(RLIMIT_AS, &(struct rlimit){PROGRAM_BYTES_MAX, PROGRAM_BYTES_MAX});
		execvp(argv[0], argv);
		_exit(127);
	}
	memory.header->root_pid = (uint32_t)pid;
	prctl(PR_SET_PTRACER, (unsigned long)pid); /* events by signal: it takes our descriptors */
	close(gate[0]);
	if (write(gate[1], "", 1) != 1)
		fail("gate");
	close(gate[1]);
	return pid;
}

static void print_processes(FILE *out)
{
	uint32_t n = atomic_load(&memory.header->processes_used);

	fprintf(out, "\"processes\": [");
	for (uint32_t i = 0, first = 1; i < n && i < memory.header->sizes.nr_processes; i++) {
		struct process *p = &memory.processes[i];

		if (!atomic_load(&p->committed))
			continue;
		for (char *c = p->command; *c != '\0'; c++)
			if (*c == '"' || *c == '\\' || *c < ' ')
				*c = '_'; /* for JSON */
		fprintf(out, "%s{\"how\": %u, \"pid\": %u, \"ppid\": %u, \"command\": \"%.64s\"}",
			first ? "" : ", ", p->how, p->pid, p->ppid, p->command);
		first = 0;
	}
	fprintf(out, "]");
}

static void print_result(int status)
{
	FILE *out = fopen(option_result, "w");
	uint64_t active = 0, degraded = 0;

	for (uint32_t i = 0; i < option_slots; i++) {
		for (int j = 0; j < NR_DEGRADED_REASONS; j++)
			degraded += atomic_load(&memory.slots[i].degraded[j]);
		if (atomic_load(&memory.slots[i].state) == SLOT_FREE)
			continue;
		active++;
		add_up(&memory.slots[i]);
	}
	for (int i = 0; i < NR_LOSS_REASONS; i++)
		totals.lost[i] += atomic_load(&memory.header->lost[i]);
	fprintf(out, "{\"status\": %d, \"ended\": %lu, \"with_cpu\": %lu, \"active\": %lu, ",
		status, totals.ended, totals.with_cpu, active);
	fprintf(out, "\"samples\": %lu, \"weight\": %lu, \"overrun\": %lu, \"cpu_ns\": %lu, ",
		totals.samples, totals.weight, totals.overrun, totals.cpu_ns);
	fprintf(out, "\"asked\": %lu, \"counted\": %lu, ", totals.asked, totals.counted);
	fprintf(out, "\"degraded\": %lu, \"lost\": {", degraded);
	for (unsigned int i = 0; i < NR_LOSS_REASONS; i++)
		fprintf(out, "%s\"%s\": %lu", i ? ", " : "", loss_key(i), totals.lost[i]);
	fprintf(out, "}, \"hellos\": [");
	for (int i = 0; i < nr_hellos; i++)
		fprintf(out, "%s{\"pid\": %u, \"interpreter\": %u, \"path\": \"%s\"}",
			i ? ", " : "", hellos[i].pid, hellos[i].interpreter, hellos[i].path);
	fprintf(out, "], ");
	print_processes(out);
	fprintf(out, "}\n");
	fclose(out);
}

static int exit_status(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void quit(int signo)
{
	(void)signo;
	_exit(0);
}

int main(int argc, char **argv)
{
	char socket_name[64];
	int c, listener, status = 0;
	uint32_t seen = 0;
	pid_t pid;

	while ((c = getopt(argc, argv, "+r:t:c:j:p:s:xqm")) != -1) {
		switch (c) {
		case 'r':
			option_result = optarg;
			break;
		case 't':
			option_trigger = optarg;
			break;
		case 'c':
			option_period = strtoul(optarg, NULL, 0);
			break;
		case 'j':
			option_jitter = strtoul(optarg, NULL, 0);
			break;
		case 'p':
			option_preload = optarg;
			break;
		case 's':
			option_slots = strtoul(optarg, NULL, 0);
			break;
		case 'x':
			option_refuse = 1;
			break;
		case 'q':
			option_orphan = signal(SIGUSR1, quit) == SIG_DFL;
			break;
		case 'm':
			option_both = 1;
			break;
		default:
			return 125;
		}
	}
	if (argc - optind < 3 || option_slots > SLOTS_MAX)
		return 125;
	make_memory();
	listener = listen_abstract(socket_name);
	pid = launch(argv[optind], argv + optind + 2, socket_name);
	for (;;) {
		struct pollfd hello = {.fd = listener, .events = POLLIN};

		atomic_store(&memory.header->heartbeat_ns, now_ns());
		while (poll(&hello, 1, 0) > 0)
			meet(listener);
		serve();
		if (waitpid(pid, &status, WNOHANG) == pid)
			break;
		seen = memory_wait(&memory, seen, 2000000);
	}
	serve();
	print_result(exit_status(status));
	return exit_status(status);
}
