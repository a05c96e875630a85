/* SPDX-License-Identifier: MIT */
/* Guarded loads: the table of faulting instructions, and loads from another process,
 * each page once where that is wanted. */
#include "core/base/load.h"

#include <string.h>
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

void load_pages_clear(struct load_pages *pages)
{
	memset(pages->keys, 0, sizeof(pages->keys));
	pages->nr_loaded = 0;
}

void load_pages_fetch(struct load_pages *pages, pid_t pid, const uint64_t *numbers, size_t nr)
{
	struct iovec local[LOAD_PAGES_NAMED], remote[LOAD_PAGES_NAMED];
	size_t places[LOAD_PAGES_NAMED], nr_places = 0;
	ssize_t length;

	for (size_t i = 0; i < nr && i < LOAD_PAGES_NAMED; i++) {
		size_t place = numbers[i] % LOAD_PAGES;

		if (pages->keys[place])
			continue;
		pages->keys[place] = numbers[i] + 1;
		local[nr_places] = (struct iovec){pages->bytes[place], LOAD_PAGE_BYTES};
		remote[nr_places] = (struct iovec){
			(void *)(uintptr_t)(numbers[i] * LOAD_PAGE_BYTES), LOAD_PAGE_BYTES};
		places[nr_places++] = place;
	}
	length = nr_places ? process_vm_readv(pid, local, nr_places, remote, nr_places, 0) : 0;
	for (size_t i = length > 0 ? (size_t)length / LOAD_PAGE_BYTES : 0; i < nr_places; i++)
		pages->keys[places[i]] = 0;
}

static void name_page(struct load_pages *pages, uint64_t number)
{
	for (uint32_t i = 0; i < pages->nr_loaded; i++)
		if (pages->loaded[i] == number)
			return;
	if (pages->nr_loaded < LOAD_PAGES_NAMED)
		pages->loaded[pages->nr_loaded++] = number;
}

static const uint8_t *page_at(struct load_pages *pages, pid_t pid, uint64_t number)
{
	size_t place = number % LOAD_PAGES;

	if (!pages->nr_loaded || pages->loaded[pages->nr_loaded - 1] != number)
		name_page(pages, number);
	if (pages->keys[place] == number + 1)
		return pages->bytes[place];
	pages->keys[place] = 0;
	if (!load_remote(pid, number * LOAD_PAGE_BYTES, pages->bytes[place], LOAD_PAGE_BYTES))
		return NULL;
	pages->keys[place] = number + 1;
	return pages->bytes[place];
}

bool load_paged(struct load_pages *pages, pid_t pid, uint64_t address, void *to, size_t length)
{
	uint8_t *at = to;

	while (length) { /* each turn takes what is left of a page */
		size_t offset = address % LOAD_PAGE_BYTES, part = LOAD_PAGE_BYTES - offset;
		const uint8_t *page = page_at(pages, pid, address / LOAD_PAGE_BYTES);

		if (!page)
			return false;
		if (part > length)
			part = length;
		memcpy(at, page + offset, part);
		at += part;
		address += part;
		length -= part;
	}
	return true;
}
