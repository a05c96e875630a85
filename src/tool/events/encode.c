/* SPDX-License-Identifier: MIT */
/*
 * An event's name to its encoding, by libpfm4.
 *
 * libpfm4 brings a perf_event.h of its own that steps back where the kernel's is included first.
 * Only what struct perf_kind holds is taken from it: periods and precision come from us. The
 * modifiers are ours as well, since libpfm4's own set differs between its tables.
 */
#include "tool/events/events.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <perfmon/pfmlib_perf_event.h>
#include <string.h>

#define LIBPFM "libpfm.so.4"

struct libpfm {
	__typeof__(pfm_initialize) *initialize;
	__typeof__(pfm_get_os_event_encoding) *encode;
	__typeof__(pfm_strerror) *strerror;
};

static int load_libpfm(struct libpfm *ret_libpfm, struct errbuf *err)
{
	void *handle = dlopen(LIBPFM, RTLD_NOW | RTLD_LOCAL);
	struct libpfm libpfm;
	int code;

	if (!handle)
		return errbuf_set(err, -ELIBACC,
				  "Cannot load " LIBPFM " for the names of perf events: install "
				  "libpfm4, or use -e " EVENT_CPU_TIME);
	libpfm.initialize = (__typeof__(pfm_initialize) *)dlsym(handle, "pfm_initialize");
	libpfm.encode =
		(__typeof__(pfm_get_os_event_encoding) *)dlsym(handle, "pfm_get_os_event_encoding");
	libpfm.strerror = (__typeof__(pfm_strerror) *)dlsym(handle, "pfm_strerror");
	if (!libpfm.initialize || !libpfm.encode || !libpfm.strerror)
		return errbuf_set(err, -ELIBACC, LIBPFM " lacks a function that is needed");
	code = libpfm.initialize();
	if (code != PFM_SUCCESS)
		return errbuf_set(err, -ELIBACC, LIBPFM " cannot start: %s", libpfm.strerror(code));
	*ret_libpfm = libpfm; /* stays loaded until the program ends */
	return 0;
}

/* Split "name:uk" into name and privilege levels. Returns false where the rest is no modifier. */
static bool split_modifiers(const char *event, char *name, size_t name_bytes, int *levels)
{
	const char *colon = strrchr(event, ':');
	size_t length = colon ? (size_t)(colon - event) : strlen(event);

	*levels = PFM_PLM0 | PFM_PLM3;
	if (colon && colon[1] && colon[1 + strspn(colon + 1, "uk")] == 0) {
		*levels = (strchr(colon, 'u') ? PFM_PLM3 : 0) | (strchr(colon, 'k') ? PFM_PLM0 : 0);
	} else {
		length = strlen(event);
	}
	if (!length || length >= name_bytes)
		return false;
	memcpy(name, event, length);
	name[length] = 0;
	return true;
}

/* Software events that sampling by a signal in the thread itself cannot or must not serve. */
static int refuse_unsuited(const struct perf_kind *kind, const char *name, struct errbuf *err)
{
	if (kind->type != PERF_TYPE_SOFTWARE)
		return 0;
	switch (kind->config) {
	case PERF_COUNT_SW_CONTEXT_SWITCHES:
	case PERF_COUNT_SW_CPU_MIGRATIONS:
		return errbuf_set(err, -ENOTSUP,
				  "Cannot sample %s: it happens while a thread waits, and a signal "
				  "to a waiting thread changes what its system call returns",
				  name);
	case PERF_COUNT_SW_DUMMY:
	case PERF_COUNT_SW_BPF_OUTPUT:
	case PERF_COUNT_SW_CGROUP_SWITCHES:
		return errbuf_set(err, -ENOTSUP,
				  "Cannot sample %s: it counts nothing that a thread does", name);
	default:
		return 0;
	}
}

static bool is_scheduler_event(const char *name)
{
	return !strncmp(name, "sched:", 6) || !strncmp(name, "syscalls:", 9) ||
	       !strncmp(name, "raw_syscalls:", 13);
}

static int encode(const char *event, struct perf_event_attr *ret_attr, struct errbuf *err)
{
	pfm_perf_encode_arg_t argument = {.attr = ret_attr, .size = sizeof(argument)};
	struct libpfm libpfm = {0};
	char name[256];
	int levels, code;

	if (is_scheduler_event(event))
		return errbuf_set(err, -ENOTSUP,
				  "Cannot sample %s: scheduler and system call events belong to "
				  "waiting, which a signal in the thread would disturb",
				  event);
	if (!split_modifiers(event, name, sizeof(name), &levels))
		return errbuf_set(err, -ENOENT, "'%s' is no event: see 'pathprof list'", event);
	code = load_libpfm(&libpfm, err);
	if (code)
		return code;
	memset(ret_attr, 0, sizeof(*ret_attr));
	ret_attr->size = sizeof(*ret_attr);
	code = libpfm.encode(name, levels, PFM_OS_PERF_EVENT, &argument);
	if (code != PFM_SUCCESS)
		return errbuf_set(err, -ENOENT,
				  "'%s' is no event that libpfm4 knows on this machine (%s): see "
				  "'pathprof list'",
				  event, libpfm.strerror(code));
	return 0;
}

int event_encode(const char *name, struct perf_kind *ret_kind, bool *ret_clock, struct errbuf *err)
{
	struct perf_event_attr attr;
	struct perf_kind kind;
	int code = encode(name, &attr, err);

	if (code)
		return code;
	kind = (struct perf_kind){.type = attr.type,
				  .exclude_user = attr.exclude_user,
				  .exclude_kernel = attr.exclude_kernel,
				  .config = attr.config,
				  .config1 = attr.config1,
				  .config2 = attr.config2};
	code = refuse_unsuited(&kind, name, err);
	if (code)
		return code;
	*ret_kind = kind;
	*ret_clock = kind.type == PERF_TYPE_SOFTWARE && (kind.config == PERF_COUNT_SW_CPU_CLOCK ||
							 kind.config == PERF_COUNT_SW_TASK_CLOCK);
	return 0;
}
