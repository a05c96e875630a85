/* SPDX-License-Identifier: MIT */
/* One event of a recording of several. */
#include "tool/trace/trace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int no_such_event(const struct trace *trace, const char *name, struct errbuf *err)
{
	char names[512] = "";
	size_t used = 0;

	for (size_t i = 0; i < trace->nr_events && used < sizeof(names); i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
					 trace->events[i].name);
	return errbuf_set(err, -ENOENT, "The recording has no event '%s'; it has: %s", name, names);
}

int trace_find_event(const struct trace *trace, const char *name, uint32_t *ret_event,
		     struct errbuf *err)
{
	for (uint32_t i = 0; i < trace->nr_events; i++) {
		if (strcmp(trace->events[i].name, name) == 0) {
			*ret_event = i;
			return 0;
		}
	}
	return no_such_event(trace, name, err);
}

int trace_keep_event(struct trace *trace, const char *name, struct errbuf *err)
{
	uint32_t event = 0;
	size_t kept = 0;
	int code = trace_find_event(trace, name, &event, err);

	if (code)
		return code;
	for (size_t i = 0; i < trace->nr_samples; i++) {
		if (trace->samples[i].event != event)
			continue;
		trace->samples[kept] = trace->samples[i];
		trace->samples[kept++].event = 0;
	}
	trace->nr_samples = kept;
	trace->events[0] = trace->events[event];
	trace->nr_events = 1;
	return 0;
}
