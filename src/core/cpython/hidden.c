/* SPDX-License-Identifier: MIT */
/* The program's own file and data: see hidden.h. Every offset of the file is checked. */
#include "core/cpython/hidden.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUNTIME_SECTION "PyRuntime" /* behind one dot or more */
#define SEGMENT_MAX	(16u << 20) /* bytes of a segment that are looked through: some 5 ms */

/* It reads what a sanitizer has between two variables as well. */
#define NOT_SANITIZED __attribute__((no_sanitize("address")))

static const void *part(const struct hidden *hidden, uint64_t at, uint64_t bytes)
{
	if (at > hidden->file_bytes || bytes > hidden->file_bytes - at)
		return NULL;
	return hidden->file + at;
}

/* The first that is listed is the program. */
static int keep_program(struct dl_phdr_info *info, size_t size, void *to)
{
	struct hidden *hidden = to;

	(void)size;
	hidden->base = info->dlpi_addr;
	hidden->segments = info->dlpi_phdr;
	hidden->nr_segments = info->dlpi_phnum;
	return 1;
}

static bool map_file(struct hidden *hidden)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat status;
	void *file = MAP_FAILED;

	if (fd < 0)
		return false;
	if (!fstat(fd, &status) && (uint64_t)status.st_size >= sizeof(ElfW(Ehdr)))
		file = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (file == MAP_FAILED)
		return false;
	hidden->file = file;
	hidden->file_bytes = (size_t)status.st_size;
	return true;
}

/* Is the file what runs? */
static bool is_image(const struct hidden *hidden, const ElfW(Ehdr) * header)
{
	uint64_t bytes = hidden->nr_segments * sizeof(ElfW(Phdr));
	const void *segments = part(hidden, header->e_phoff, bytes);

	return hidden->nr_segments && header->e_phnum == hidden->nr_segments &&
	       header->e_phentsize == sizeof(ElfW(Phdr)) && segments &&
	       !memcmp(segments, hidden->segments, bytes);
}

static void keep_symbols(struct hidden *hidden, const ElfW(Shdr) * section,
			 const ElfW(Shdr) * names)
{
	const char *text = part(hidden, names->sh_offset, names->sh_size);

	hidden->symbols = part(hidden, section->sh_offset, section->sh_size);
	if (!hidden->symbols || section->sh_offset % sizeof(uint64_t) || !text || !names->sh_size ||
	    text[names->sh_size - 1]) {
		hidden->symbols = NULL;
		return;
	}
	hidden->nr_symbols = section->sh_size / sizeof(ElfW(Sym));
	hidden->names = text;
	hidden->names_bytes = names->sh_size;
}

static void read_sections(struct hidden *hidden, const ElfW(Ehdr) * header)
{
	const ElfW(Shdr) *sections =
		part(hidden, header->e_shoff, header->e_shnum * sizeof(*sections));
	const ElfW(Shdr) * titles;
	const char *text;

	if (!sections || header->e_shoff % sizeof(uint64_t) ||
	    header->e_shentsize != sizeof(*sections) || header->e_shstrndx >= header->e_shnum)
		return;
	titles = &sections[header->e_shstrndx];
	text = part(hidden, titles->sh_offset, titles->sh_size);
	if (!text || !titles->sh_size || text[titles->sh_size - 1])
		return;
	for (unsigned int i = 0; i < header->e_shnum; i++) {
		const ElfW(Shdr) *section = &sections[i];
		const char *title =
			section->sh_name < titles->sh_size ? text + section->sh_name : "";

		if (section->sh_type == SHT_SYMTAB && section->sh_link < header->e_shnum)
			keep_symbols(hidden, section, &sections[section->sh_link]);
		if (title[0] != '.' || strcmp(title + strspn(title, "."), RUNTIME_SECTION))
			continue;
		hidden->runtime = hidden->base + section->sh_addr;
		hidden->runtime_bytes = section->sh_size;
	}
}

bool hidden_open(struct hidden *ret_hidden)
{
	struct hidden hidden = {0};
	const ElfW(Ehdr) * header;

	dl_iterate_phdr(keep_program, &hidden);
	if (!map_file(&hidden))
		return false;
	header = (const void *)hidden.file;
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) || !is_image(&hidden, header)) {
		hidden_close(&hidden);
		return false;
	}
	read_sections(&hidden, header);
	*ret_hidden = hidden;
	return true;
}

void hidden_close(struct hidden *hidden)
{
	munmap((void *)(uintptr_t)hidden->file, hidden->file_bytes);
}

uint64_t hidden_symbol(const struct hidden *hidden, const char *name, uint64_t *ret_bytes)
{
	/* Most programs have no such name at all, and many symbols. */
	if (!hidden->symbols || !memmem(hidden->names, hidden->names_bytes, name, strlen(name) + 1))
		return 0;
	for (size_t i = 0; i < hidden->nr_symbols; i++) {
		const ElfW(Sym) *symbol = &hidden->symbols[i];

		if (symbol->st_shndx == SHN_UNDEF || !symbol->st_value ||
		    symbol->st_name >= hidden->names_bytes ||
		    strcmp(hidden->names + symbol->st_name, name))
			continue;
		*ret_bytes = symbol->st_size;
		return hidden->base + symbol->st_value;
	}
	return 0;
}

NOT_SANITIZED static bool is_equal(const char *a, const char *b)
{
	for (; *a == *b; a++, b++)
		if (!*a)
			return true;
	return false;
}

/* Does the program's file have this text at the address? */
static bool is_text(const struct hidden *hidden, uint64_t address, const char *text)
{
	size_t bytes = strlen(text) + 1;

	for (size_t i = 0; i < hidden->nr_segments; i++) {
		const ElfW(Phdr) *segment = &hidden->segments[i];
		uint64_t at = address - hidden->base - segment->p_vaddr;

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_R &&
		    segment->p_filesz >= bytes && at <= segment->p_filesz - bytes)
			return is_equal((const char *)(uintptr_t)address, text);
	}
	return false;
}

/* The aligned words of a segment, as far as the file fills them. */
struct words {
	const uint64_t *at;
	size_t nr;
};

static struct words words_of(const struct hidden *hidden, const ElfW(Phdr) * segment)
{
	uint64_t pad = (8 - segment->p_vaddr % 8) % 8;
	uint64_t bytes = segment->p_filesz < SEGMENT_MAX ? segment->p_filesz : SEGMENT_MAX;

	return (struct words){
		.at = (const void *)(uintptr_t)(hidden->base + segment->p_vaddr + pad),
		.nr = bytes > pad ? (bytes - pad) / 8 : 0};
}

static bool is_data(const ElfW(Phdr) * segment)
{
	return segment->p_type == PT_LOAD && segment->p_flags & PF_R && segment->p_flags & PF_W;
}

static bool is_constant(const ElfW(Phdr) * segment)
{
	return segment->p_type == PT_LOAD && segment->p_flags & PF_R && !(segment->p_flags & PF_W);
}

/* Count the types among the words; the last in *@ret_found. */
NOT_SANITIZED static unsigned int count_types(const struct hidden *hidden, struct words words,
					      const struct hidden_type *type, uint64_t *ret_found)
{
	unsigned int found = 0;

	for (size_t i = 1; i + 1 < words.nr; i++) {
		if (words.at[i] != type->basic_size || words.at[i + 1] != type->item_size ||
		    !is_text(hidden, words.at[i - 1], type->name))
			continue;
		*ret_found = (uintptr_t)&words.at[i] - type->basic_size_at;
		found++;
	}
	return found;
}

uint64_t hidden_type_find(const struct hidden *hidden, const struct hidden_type *type)
{
	unsigned int found = 0;
	uint64_t address = 0;

	for (size_t i = 0; i < hidden->nr_segments; i++)
		if (is_data(&hidden->segments[i]))
			found += count_types(hidden, words_of(hidden, &hidden->segments[i]), type,
					     &address);
	return found == 1 ? address : 0;
}

NOT_SANITIZED bool hidden_constant(const struct hidden *hidden, uint64_t value, uint64_t mask,
				   uint64_t *ret_word)
{
	uint64_t word = value;
	unsigned int found = 0;

	for (size_t i = 0; i < hidden->nr_segments; i++) {
		struct words words = words_of(hidden, &hidden->segments[i]);

		for (size_t at = 0; is_constant(&hidden->segments[i]) && at < words.nr; at++) {
			if ((words.at[at] & ~mask) != value || (found && words.at[at] == word))
				continue;
			word = words.at[at];
			found++;
		}
	}
	if (found == 1)
		*ret_word = word;
	return found == 1;
}
