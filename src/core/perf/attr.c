/* SPDX-License-Identifier: MIT */
/*
 * The attributes of a sampling event.
 *
 * By SIGTRAP: the kernel refuses sigtrap without remove_on_exec; an overflow must never reach the
 * image that follows. Inherited by threads alone, never by fork children, which would be hit, nor
 * by vfork children in their parent's memory, which would be killed after their exec. An inherited
 * event gives every new thread a full first period, so that short threads vanish, and cannot be
 * read singly.
 *
 * By a signal: with the kernel's side counted, calls of the program end with EINTR (4,150 in a
 * million at 1 ms), with the user's alone none, so that side is never counted.
 */
#include "core/perf/perf.h"

#include <linux/perf_event.h>
#include <string.h>

void perf_attr_sampling(const struct perf_sampling *sampling, struct perf_event_attr *ret_attr)
{
	const struct perf_kind *kind = &sampling->kind;

	memset(ret_attr, 0, sizeof(*ret_attr));
	ret_attr->size = sizeof(*ret_attr);
	ret_attr->type = kind->type;
	ret_attr->config = kind->config;
	ret_attr->bp_type = kind->bp_type;
	ret_attr->config1 = kind->config1;
	ret_attr->config2 = kind->config2;
	ret_attr->sample_period = sampling->first_period;
	ret_attr->disabled = !sampling->starts;
	ret_attr->exclude_user = kind->exclude_user;
	ret_attr->exclude_kernel = kind->exclude_kernel || sampling->delivery == PERF_BY_SIGNAL;
	ret_attr->exclude_hv = 1;
	ret_attr->remove_on_exec = 1;
	if (sampling->delivery == PERF_BY_SIGNAL) {
		ret_attr->wakeup_events = 1;
		return;
	}
	ret_attr->read_format = PERF_FORMAT_TOTAL_TIME_RUNNING;
	ret_attr->sigtrap = 1;
	ret_attr->sig_data = sampling->sig_data;
	ret_attr->inherit = sampling->inherit;
	ret_attr->inherit_thread = sampling->inherit;
}
