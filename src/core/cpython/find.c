/* SPDX-License-Identifier: MIT */
/*
 * Finding the interpreter by its dynamic symbols: in the executable or in a libpython that was
 * loaded globally. Called before the interpreter is initialized, so the checks are of what stands
 * in its data from the start: the version, and the sizes of the types that the walk reads. A
 * build with other structures (Py_TRACE_REFS) has other sizes.
 */
#include "core/cpython/cpython.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "core/cpython/layout_311.h"
#include "core/cpython/walk_311.h"

#define FIRST_FINAL_RELEASE 0xf0 /* Py_Version of X.Y.0 final, lower half */

static const struct cpython_layout *const layouts[] = {&cpython_layout_311};

static uint64_t symbol(const char *name)
{
	return (uintptr_t)dlsym(RTLD_DEFAULT, name);
}

static const struct cpython_layout *layout_of(uint32_t version)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i]->version == version >> 16)
			return (version & 0xffff) >= FIRST_FINAL_RELEASE ? layouts[i] : NULL;
	return NULL;
}

/* Are the instances of the type at @type as long as the table thinks? */
static bool sizes_are(const struct cpython_layout *layout, uint64_t type, uint64_t basic,
		      uint64_t item)
{
	const struct reader reader = {.kind = READER_DIRECT};
	uint64_t basic_size, item_size;

	return type && load_u64(reader, type + layout->type_basic_size, &basic_size) &&
	       load_u64(reader, type + layout->type_item_size, &item_size) && basic_size == basic &&
	       item_size == item;
}

/* Once there is a main interpreter, it points back to the runtime. */
static bool runtime_is(const struct cpython_layout *layout, uint64_t runtime)
{
	const struct reader reader = {.kind = READER_DIRECT};
	uint64_t main_interpreter, back;

	if (!load_u64(reader, runtime + layout->runtime_main_interpreter, &main_interpreter))
		return false;
	if (!main_interpreter)
		return true;
	return load_u64(reader, main_interpreter + layout->interpreter_runtime, &back) &&
	       back == runtime;
}

static int check(struct cpython *found, struct errbuf *err)
{
	const struct cpython_layout *layout = layout_of(found->version);
	unsigned int major = found->version >> 24, minor = found->version >> 16 & 0xff;
	unsigned int micro = found->version >> 8 & 0xff;

	if (!layout)
		return errbuf_set(err, -ENOTSUP,
				  "The frames of CPython %u.%u.%u cannot be read: only final "
				  "releases of 3.11 can",
				  major, minor, micro);
	if (!sizes_are(layout, found->code_type, layout->code_basic_size, CODE_UNIT_BYTES) ||
	    !sizes_are(layout, found->string_type, layout->string_basic_size, 0) ||
	    !sizes_are(layout, found->bytes_type, layout->bytes_basic_size, 1) ||
	    !runtime_is(layout, found->runtime))
		return errbuf_set(err, -ENOTSUP,
				  "The frames of this CPython %u.%u.%u cannot be read: its "
				  "structures are not those of a release build",
				  major, minor, micro);
	found->layout = layout;
	return 0;
}

int cpython_find(struct cpython *ret_cpython, struct errbuf *err)
{
	uint64_t version = symbol("Py_Version"); /* new in 3.11 */

	memset(ret_cpython, 0, sizeof(*ret_cpython));
	ret_cpython->runtime = symbol("_PyRuntime");
	if (!ret_cpython->runtime && !symbol("Py_IsInitialized"))
		return errbuf_set(err, -ENOENT, "There is no CPython in this process");
	if (!ret_cpython->runtime || !version)
		return errbuf_set(err, -ENOTSUP,
				  "The frames of this CPython cannot be read: it is older than "
				  "3.11");
	memcpy(&ret_cpython->version, (const void *)(uintptr_t)version,
	       sizeof(ret_cpython->version) /* unsigned long, little endian */);
	ret_cpython->code_type = symbol("PyCode_Type");
	ret_cpython->string_type = symbol("PyUnicode_Type");
	ret_cpython->bytes_type = symbol("PyBytes_Type");
	return check(ret_cpython, err);
}
