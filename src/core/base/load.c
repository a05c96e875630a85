/* SPDX-License-Identifier: MIT */
/* Guarded loads: the table of faulting instructions, and loads from another process. */
#include "core/base/load.h"

#include <sys/uio.h>

struct fault_entry {
	int32_t instruction; /* relative to this field */
	int32_t recovery;    /* relative to this field */
};

/* Made by the linker around the section; absent where no guarded load is linked in. */
extern const struct fault_entry faults_begin[] __asm__("__start_pathprof_faults")
	__attribute__((weak, visibility("hidden")));
extern const struct fault_entry faults_end[] __asm__("__stop_pathprof_faults")
	__attribute__((weak, visibility("hidden")));

static uintptr_t resolve(const int32_t *offset)
{
	return (uintptr_t)((intptr_t)offset + *offset);
}

uintptr_t load_recover(uintptr_t pc)
{
	for (const struct fault_entry *entry = faults_begin; entry != faults_end; entry++)
		if (resolve(&entry->instruction) == pc)
			return resolve(&entry->recovery);
	return 0;
}

bool load_remote(pid_t pid, uint64_t address, void *to, size_t length)
{
	struct iovec local = {.iov_base = to, .iov_len = length};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = length};

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)length;
}
