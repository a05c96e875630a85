/* SPDX-License-Identifier: MIT */
/* What the ladder asks this machine: by trying, in a child where that may kill. */
#include "tool/events/events.h"

#include <errno.h>

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

struct event_machine event_machine_here(void)
{
	return (struct event_machine){.tick_ns = perf_tick_ns(),
				      .allowed = perf_allowed_by,
				      .sigtrap = perf_probe_sigtrap,
				      .calls = try_calls,
				      .cpu_timer = perf_probe_cpu_timer};
}

enum perf_sigtrap event_machine_sigtrap(struct event_machine *machine)
{
	if (!machine->found_sigtrap)
		machine->found_sigtrap = machine->sigtrap();
	return machine->found_sigtrap;
}
