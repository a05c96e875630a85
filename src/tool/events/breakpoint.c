/* SPDX-License-Identifier: MIT */
/* mem:ADDRESS[/LENGTH][:ACCESS]: a hardware breakpoint, in perf's words. */
#include "tool/events/breakpoint.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#define DATA_LENGTH_DEFAULT 4 /* perf's, as for an int */

static int no_breakpoint(const char *name, struct errbuf *err)
{
	return errbuf_set(err, -ENOENT,
			  "'%s' is no breakpoint: mem:ADDRESS[/LENGTH][:ACCESS], a number, 1, 2, 4 "
			  "or 8 bytes, r, w or rw (the default) or x",
			  name);
}

/* Decimal or 0x; nothing that strtoull() lets through besides. */
static bool parse_address(const char *text, const char **ret_end, uint64_t *ret_address)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*ret_address = strtoull(text, &end, text[1] == 'x' ? 16 : 10);
	*ret_end = end;
	return !errno;
}

/* ":rw", with ":u" or ":k" behind it. Returns false: it is no such thing. */
static bool parse_access(const char *text, struct perf_kind *kind)
{
	uint32_t type = 0;

	for (int field = 0; *text == ':' && field < 2; field++) {
		size_t length = 1 + strcspn(text + 1, ":");
		bool user, kernel;

		if (length > 1 && 1 + strspn(text + 1, "rwx") == length) {
			for (size_t i = 1; i < length; i++)
				type |= text[i] == 'r'	 ? HW_BREAKPOINT_R
					: text[i] == 'w' ? HW_BREAKPOINT_W
							 : HW_BREAKPOINT_X;
		} else if (length > 1 && 1 + strspn(text + 1, "uk") == length) {
			user = memchr(text, 'u', length);
			kernel = memchr(text, 'k', length);
			kind->exclude_user = !user;
			kind->exclude_kernel = !kernel;
		} else {
			return false;
		}
		text += length;
	}
	kind->bp_type = type ? type : HW_BREAKPOINT_RW;
	return !*text;
}

int breakpoint_encode(const char *name, struct perf_kind *ret_kind, struct errbuf *err)
{
	struct perf_kind kind = {.type = PERF_TYPE_BREAKPOINT};
	const char *at;

	if (!parse_address(name + strlen(EVENT_BREAKPOINT), &at, &kind.config1))
		return no_breakpoint(name, err);
	if (*at == '/' &&
	    (!parse_address(at + 1, &at, &kind.config2) ||
	     (kind.config2 != 1 && kind.config2 != 2 && kind.config2 != 4 && kind.config2 != 8)))
		return no_breakpoint(name, err);
	if (!parse_access(at, &kind))
		return no_breakpoint(name, err);
	if (kind.bp_type == HW_BREAKPOINT_X) {
		if (kind.config2)
			return errbuf_set(err, -ENOENT,
					  "'%s': a breakpoint on execution takes no length", name);
		kind.config2 = sizeof(long); /* what the kernel wants of all of them */
	} else if (kind.bp_type & HW_BREAKPOINT_X) {
		return no_breakpoint(name, err);
	}
	if (!kind.config2)
		kind.config2 = DATA_LENGTH_DEFAULT;
	if (kind.bp_type != HW_BREAKPOINT_X && kind.config1 % kind.config2)
		return errbuf_set(err, -ENOENT,
				  "'%s': the address is no multiple of the length, as processors "
				  "want it",
				  name);
	*ret_kind = kind;
	return 0;
}
