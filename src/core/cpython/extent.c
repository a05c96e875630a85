/* SPDX-License-Identifier: MIT */
/* How long the interpreter's own state is: what its symbol says. */
#include "core/cpython/cpython.h"

#include <dlfcn.h>
#include <link.h>

uint32_t cpython_runtime_bytes(const struct cpython *cpython)
{
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;

	if (!cpython->runtime ||
	    !dladdr1((const void *)(uintptr_t)cpython->runtime, &info, (void **)&symbol,
		     RTLD_DL_SYMENT) ||
	    !symbol || (uintptr_t)info.dli_saddr != cpython->runtime)
		return 0;
	return symbol->st_size < UINT32_MAX ? (uint32_t)symbol->st_size : 0;
}
