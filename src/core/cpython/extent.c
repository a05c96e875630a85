/* SPDX-License-Identifier: MIT */
/* How long the interpreter's own state is: what its symbol says, or its section. */
#include "core/cpython/cpython.h"

#include <dlfcn.h>
#include <link.h>

#include "core/cpython/hidden.h"
#include "core/cpython/layouts.h"

static uint32_t hidden_bytes(uint64_t runtime)
{
	struct hidden hidden;
	uint64_t bytes = 0;

	if (!hidden_open(&hidden))
		return 0;
	if (hidden_symbol(&hidden, "_PyRuntime", &bytes) != runtime)
		bytes = hidden.runtime == runtime ? hidden.runtime_bytes : 0;
	hidden_close(&hidden);
	return bytes < UINT32_MAX ? (uint32_t)bytes : 0;
}

bool cpython_is_free_threaded(const struct cpython *cpython)
{
	const struct cpython_layout *layout = cpython_layout_at(cpython->layout);

	return layout && layout->free_threaded;
}

uint32_t cpython_runtime_bytes(const struct cpython *cpython)
{
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;

	if (!cpython->runtime)
		return 0;
	if (!dladdr1((const void *)(uintptr_t)cpython->runtime, &info, (void **)&symbol,
		     RTLD_DL_SYMENT) ||
	    !symbol || (uintptr_t)info.dli_saddr != cpython->runtime)
		return hidden_bytes(cpython->runtime);
	return symbol->st_size < UINT32_MAX ? (uint32_t)symbol->st_size : 0;
}
