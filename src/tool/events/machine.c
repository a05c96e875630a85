/* SPDX-License-Identifier: MIT */
/* What the ladder asks this machine: by trying, in a child where that may kill. */
#include "tool/events/events.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "tool/events/tracepoint.h"

static int try_calls(struct errbuf *err)
{
	uint64_t number;
	int code = tracepoint_number("syscalls:sys_enter_clock_nanosleep", &number, err);

	if (code)
		return code;
	code = perf_probe_calls(number);
	if (code == -EINTR)
		return errbuf_set(err, -ENOTSUP,
				  "on this kernel a tracepoint's signal breaks off the system call "
				  "it comes from; a newer one signals at its end");
	return code ? errbuf_set(err, code,
				 "whether its signals break off system calls could not be tried "
				 "(errno %d); see pathprof doctor",
				 -code)
		    : 0;
}

static int open_one(const struct event_choice *choice, int *ret_fd)
{
	bool async = choice->trigger == TRIGGER_PERF_ASYNC;
	const struct perf_sampling sampling = {
		.delivery = async ? PERF_BY_SIGNAL : PERF_BY_SIGTRAP,
		.signo = SIGURG, /* ignored by default; none comes */
		.kind = choice->perf,
		.period = 1u << 30,
		.first_period = 1u << 30,
	};

	return perf_open_sampling(&sampling, 0, ret_fd);
}

static int try_together(const struct event_choices *choices, size_t *ret_index)
{
	int fds[EVENTS_MAX];
	size_t nr = 0;
	int code = 0;

	for (size_t i = 0; i < choices->nr && !code; i++) {
		if (choices->events[i].trigger == TRIGGER_CPU_TIMER)
			continue;
		code = open_one(&choices->events[i], &fds[nr]);
		if (code)
			*ret_index = i;
		else
			nr++;
	}
	while (nr > 0)
		close(fds[--nr]);
	return code;
}

struct event_machine event_machine_here(void)
{
	return (struct event_machine){.tick_ns = perf_tick_ns(),
				      .allowed = perf_allowed_by,
				      .sigtrap = perf_probe_sigtrap,
				      .calls = try_calls,
				      .cpu_timer = perf_probe_cpu_timer,
				      .duplicate = perf_probe_duplicate,
				      .together = try_together};
}

enum perf_sigtrap event_machine_sigtrap(struct event_machine *machine)
{
	if (!machine->found_sigtrap)
		machine->found_sigtrap = machine->sigtrap();
	return machine->found_sigtrap;
}
