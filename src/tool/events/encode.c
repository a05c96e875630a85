/* SPDX-License-Identifier: MIT */
/*
 * An event's name to its encoding. Breakpoints, tracepoints, a PMU's own words and raw codes
 * ("r01c2") are told by their form; all other names are libpfm4's.
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/events/breakpoint.h"
#include "tool/events/pmu.h"
#include "tool/events/suggest.h"
#include "tool/events/tracepoint.h"

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
		return errbuf_set(
			err, -ENOTSUP,
			"Cannot sample %s: it happens while a thread waits, and a signal "
			"to a waiting thread changes what its system call returns; record "
			"with --wall to see waits",
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

static int refuse_unknown(const char *name, const char *cause, struct errbuf *err)
{
	const char *nearest = suggest(name, event_names());

	if (nearest)
		return errbuf_set(err, -ENOENT,
				  "'%s' is no event that libpfm4 knows on this machine (%s): did "
				  "you mean '%s'? See 'pathprof list'",
				  name, cause, nearest);
	return errbuf_set(err, -ENOENT,
			  "'%s' is no event that libpfm4 knows on this machine (%s): see "
			  "'pathprof list'",
			  name, cause);
}

/* libpfm4's names: what perf calls generic events, and those of this machine's processor. */
static int encode_by_libpfm(const char *name, int levels, struct perf_kind *ret_kind,
			    struct errbuf *err)
{
	struct perf_event_attr attr = {.size = sizeof(attr)};
	pfm_perf_encode_arg_t argument = {.attr = &attr, .size = sizeof(argument)};
	struct libpfm libpfm = {0};
	int code = load_libpfm(&libpfm, err);

	if (code)
		return code;
	code = libpfm.encode(name, levels, PFM_OS_PERF_EVENT, &argument);
	if (code != PFM_SUCCESS)
		return refuse_unknown(name, libpfm.strerror(code), err);
	*ret_kind = (struct perf_kind){.type = attr.type,
				       .config = attr.config,
				       .config1 = attr.config1,
				       .config2 = attr.config2};
	return refuse_unsuited(ret_kind, name, err);
}

/* Names of perf's that libpfm4 does not know. */
static bool encode_rare(const char *name, struct perf_kind *ret_kind)
{
	static const struct {
		const char *name;
		uint64_t config;
	} rare[] = {{"alignment-faults", PERF_COUNT_SW_ALIGNMENT_FAULTS},
		    {"emulation-faults", PERF_COUNT_SW_EMULATION_FAULTS}};

	for (size_t i = 0; i < sizeof(rare) / sizeof(rare[0]); i++) {
		if (strcmp(name, rare[i].name) != 0)
			continue;
		*ret_kind =
			(struct perf_kind){.type = PERF_TYPE_SOFTWARE, .config = rare[i].config};
		return true;
	}
	return false;
}

/* "r01c2": the code as the processor's manual has it. */
static bool encode_raw(const char *name, struct perf_kind *ret_kind)
{
	size_t digits = name[0] == 'r' ? strspn(name + 1, "0123456789abcdefABCDEF") : 0;

	if (!digits || digits > 16 || name[1 + digits])
		return false;
	*ret_kind =
		(struct perf_kind){.type = PERF_TYPE_RAW, .config = strtoull(name + 1, NULL, 16)};
	return true;
}

/* Does it name an event by itself, without modifiers and terms? */
static bool is_name(const char *name)
{
	struct perf_kind unused;
	struct errbuf no_matter;

	return encode_raw(name, &unused) || encode_rare(name, &unused) ||
	       !encode_by_libpfm(name, PFM_PLM0 | PFM_PLM3, &unused, &no_matter);
}

/* GROUP:NAME is a tracepoint, or an event of a processor with one of its variants. */
static int encode_tracepoint(const char *name, int levels, struct perf_kind *ret_kind,
			     struct errbuf *err)
{
	struct perf_kind kind = {.type = PERF_TYPE_TRACEPOINT};
	char group[EVENT_SPEC_BYTES];
	struct errbuf unused;
	int code = tracepoint_refuse(name, err);

	if (code)
		return code;
	code = tracepoint_number(name, &kind.config, err);
	if (!code) {
		*ret_kind = kind;
		return 0;
	}
	if (!encode_by_libpfm(name, levels, ret_kind, &unused))
		return 0;
	memcpy(group, name, strlen(name) + 1);
	*strchr(group, ':') = 0;
	if (is_name(group))
		return errbuf_set(err, -ENOENT,
				  "'%s': behind the colon u and k may stand, for user and kernel "
				  "mode: see 'pathprof list'",
				  name);
	return code;
}

static int encode_named(const char *event, struct perf_kind *ret_kind, struct errbuf *err)
{
	struct perf_kind kind = {0};
	char name[EVENT_SPEC_BYTES];
	int levels, code = 0;

	if (!split_modifiers(event, name, sizeof(name), &levels))
		return errbuf_set(err, -ENOENT, "'%s' is no event: see 'pathprof list'", event);
	if (tracepoint_is_name(name))
		code = encode_tracepoint(name, levels, &kind, err);
	else if (!encode_raw(name, &kind) && !encode_rare(name, &kind))
		code = encode_by_libpfm(name, levels, &kind, err);
	if (code)
		return code;
	kind.exclude_user = !(levels & PFM_PLM3);
	kind.exclude_kernel = !(levels & PFM_PLM0);
	*ret_kind = kind;
	return 0;
}

/*
 * A number may stand for anything of these, waits included: names tell what may be sampled. Probes
 * (kprobe, uprobe) have types of their own, and are told by the PMU's name.
 */
static int refuse_by_number(const struct perf_kind *kind, const char *name, struct errbuf *err)
{
	if (kind->type == PERF_TYPE_BREAKPOINT)
		return errbuf_set(err, -ENOTSUP,
				  "Cannot sample %s: a breakpoint is named mem:ADDRESS", name);
	if (kind->type == PERF_TYPE_TRACEPOINT || !strncmp(name, "kprobe/", 7) ||
	    !strncmp(name, "uprobe/", 7))
		return errbuf_set(err, -ENOTSUP,
				  "Cannot sample %s: whether it belongs to waiting is known of a "
				  "tracepoint by its name alone, GROUP:NAME",
				  name);
	return refuse_unsuited(kind, name, err);
}

static int encode_pmu(const char *name, struct perf_kind *ret_kind, struct errbuf *err)
{
	int code = pmu_encode(PMU_ROOT, name, ret_kind, err);
	char device[EVENT_SPEC_BYTES];

	snprintf(device, sizeof(device), "%.*s", (int)strcspn(name, "/"), name);
	if (code == -ENODEV && is_name(device))
		return errbuf_set(err, -ENOENT,
				  "'%s': the terms of an event are period=N and freq=N; others are "
				  "for a PMU, which '%s' is not",
				  name, device);

	return code ? code : refuse_by_number(ret_kind, name, err);
}

int event_encode(const char *name, struct perf_kind *ret_kind, bool *ret_clock, struct errbuf *err)
{
	struct perf_kind kind;
	int code;

	if (!strncmp(name, EVENT_BREAKPOINT, strlen(EVENT_BREAKPOINT)))
		code = breakpoint_encode(name, &kind, err);
	else if (strchr(name, '/'))
		code = encode_pmu(name, &kind, err);
	else
		code = encode_named(name, &kind, err);
	if (code)
		return code;
	*ret_kind = kind;
	*ret_clock = perf_is_clock(&kind);
	return 0;
}
