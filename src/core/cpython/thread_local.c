/* SPDX-License-Identifier: MIT */
/*
 * The calling thread's copy of a thread-local variable, in glibc's layout: the thread pointer's
 * block holds the address of the vector (DTV) whose entry of 16 bytes for each module begins with
 * the address of the module's storage, or -1 where the thread has not allocated it. The word 16
 * bytes before the vector counts the entries.
 */
#include "core/cpython/thread_local.h"

#define MODULES_MAX	    65536
#define STATIC_DISTANCE_MAX (1 << 24) /* from the thread pointer: larger is an address */
#define DTV_ENTRY_BYTES	    16
#define DTV_UNALLOCATED	    UINT64_MAX

static const struct reader here = {.kind = READER_DIRECT};

#if defined(__x86_64__)
#define DTV_OFFSET 8 /* in the block at the thread pointer */

static inline uint64_t thread_pointer(void)
{
	uint64_t pointer;

	__asm__("movq %%fs:0, %0" : "=r"(pointer));
	return pointer;
}
#else
#define DTV_OFFSET 0

static inline uint64_t thread_pointer(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}
#endif

bool thread_local_decode(struct reader reader, uint64_t getter,
			 struct cpython_thread_local *ret_variable)
{
#if defined(__x86_64__)
	return thread_local_decode_x86_64(reader, getter, ret_variable);
#else
	return thread_local_decode_aarch64(reader, getter, ret_variable);
#endif
}

bool thread_local_descriptor(struct reader reader, uint64_t argument,
			     struct cpython_thread_local *ret_variable)
{
	int64_t distance = (int64_t)argument;
	uint64_t module, offset;

	if (distance > -STATIC_DISTANCE_MAX && distance < STATIC_DISTANCE_MAX) {
		*ret_variable = (struct cpython_thread_local){.known = 1, .offset = distance};
		return true;
	}
	if (!load_u64(reader, argument, &module) || !load_u64(reader, argument + 8, &offset) ||
	    !module || module > MODULES_MAX)
		return false;
	*ret_variable = (struct cpython_thread_local){
		.known = 1, .module = (uint32_t)module, .offset = (int64_t)offset};
	return true;
}

bool thread_local_load(const struct cpython_thread_local *variable, uint64_t *ret_value)
{
	uint64_t base = thread_pointer(), vector, last;

	if (!variable->module)
		return load_u64(here, base + (uint64_t)variable->offset, ret_value);
	if (!load_u64(here, base + DTV_OFFSET, &vector) ||
	    !load_u64(here, vector - DTV_ENTRY_BYTES, &last) || variable->module > last ||
	    !load_u64(here, vector + (uint64_t)variable->module * DTV_ENTRY_BYTES, &base) ||
	    base == DTV_UNALLOCATED || !base)
		return false;
	return load_u64(here, base + (uint64_t)variable->offset, ret_value);
}
