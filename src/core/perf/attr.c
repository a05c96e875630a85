/* SPDX-License-Identifier: MIT */
/*
 * The attributes of a sampling event.
 *
 * sigtrap needs remove_on_exec (the kernel refuses it otherwise): an overflow must never reach
 * the image that follows. The event is per thread (inherit stays 0): inherited ones give every
 * new thread a full first period, so that short threads vanish, and cannot be read singly.
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
	ret_attr->disabled = 1;
	ret_attr->exclude_user = kind->exclude_user;
	ret_attr->exclude_kernel = kind->exclude_kernel;
	ret_attr->exclude_hv = 1;
	ret_attr->remove_on_exec = 1;
	ret_attr->sigtrap = 1;
	ret_attr->sig_data = sampling->sig_data;
}
