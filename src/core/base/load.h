/* SPDX-License-Identifier: MIT */
/*
 * Memory readers: how code that walks foreign data loads from it.
 *
 * The walk (core/cpython, core/unwind) is written once, as inline functions that take a `struct
 * reader` which is a compile-time constant at each place of use, so that the compiler folds the
 * choice away:
 *
 *   READER_DIRECT  this process, in the signal handler. A load is one instruction; where it faults,
 *                  the SIGSEGV or SIGBUS handler finds the instruction in the section
 *                  `pathprof_faults` and continues at the entry's recovery address, which makes
 *                  the load return false. The section holds pairs of 32-bit offsets relative to
 *                  themselves: faulting instruction, recovery. (The idea is the kernel's
 *                  exception table, Documentation/arch/x86/exception-tables.rst.)
 *   READER_REMOTE  another process, by process_vm_readv(): a system call a load, or, where `pages`
 *                  is given, one for each page that is met.
 *
 * load_recover() is what the fault handler calls.
 */
#ifndef PATHPROF_CORE_BASE_LOAD_H
#define PATHPROF_CORE_BASE_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum reader_kind {
	READER_DIRECT,
	READER_REMOTE,
};

struct load_pages;

struct reader {
	enum reader_kind kind;
	pid_t pid;		  /* READER_REMOTE */
	struct load_pages *pages; /* READER_REMOTE: what was read before; NULL: nothing is kept */
};

/**
 * load_recover - is this program counter a guarded load that faulted?
 * @pc: the interrupted program counter
 * Returns the address to continue at, or 0 if it is not ours. Signal-safe.
 */
uintptr_t load_recover(uintptr_t pc);

/** load_remote - READER_REMOTE's way. Returns false if not all of @length could be read. */
bool load_remote(pid_t pid, uint64_t address, void *to, size_t length);

/*
 * Pages of another process as they were at their first load since load_pages_clear(). What is read
 * through them is of one moment only if the other process stood still: who cares checks that.
 */
#define LOAD_PAGE_BYTES	 4096
#define LOAD_PAGES_NAMED 32
#define LOAD_PAGES	 256 /* kept; the page number chooses the place, the last one stays */
struct load_pages {
	uint64_t keys[LOAD_PAGES]; /* page number + 1; 0: empty */
	uint32_t nr_loaded;	   /* entries of @loaded, of which only the first are kept */
	uint64_t loaded[LOAD_PAGES_NAMED]; /* page numbers, as they were met since the clearing */
	uint8_t bytes[LOAD_PAGES][LOAD_PAGE_BYTES];
};

/** load_pages_clear - forget what was read */
void load_pages_clear(struct load_pages *pages);

/**
 * load_pages_fetch - read pages that will be needed, by one system call
 * @numbers: at most LOAD_PAGES_NAMED of them, say those that a former reading loaded
 * What cannot be read is left for load_paged() to try.
 */
void load_pages_fetch(struct load_pages *pages, pid_t pid, const uint64_t *numbers, size_t nr);

/** load_paged - any @length, across pages; false if not all of it could be read */
bool load_paged(struct load_pages *pages, pid_t pid, uint64_t address, void *to, size_t length);

static inline bool load_other(struct reader reader, uint64_t address, void *to, size_t length)
{
	return reader.pages ? load_paged(reader.pages, reader.pid, address, to, length)
			    : load_remote(reader.pid, address, to, length);
}

#if defined(__x86_64__)
/* At any alignment, of any type: a memory operand, which saves computing the address first. */
#define LOAD_OPERAND(type)      \
	struct operand_##type { \
		type value;     \
	} __attribute__((packed, may_alias))
LOAD_OPERAND(uint64_t);
LOAD_OPERAND(uint32_t);
LOAD_OPERAND(uint8_t);
#undef LOAD_OPERAND

#define LOAD_GUARDED(type, instruction, register_form)                                             \
	static inline                                                                              \
		__attribute__((always_inline)) bool load_direct_##type(uint64_t address, type *to) \
	{                                                                                          \
		type value;                                                                        \
		__asm__ volatile goto("1: " instruction " %1, %" register_form "0\n"               \
				      ".pushsection pathprof_faults, \"a\"\n"                      \
				      ".balign 4\n"                                                \
				      ".long 1b - .\n"                                             \
				      ".long %l[fault] - .\n"                                      \
				      ".popsection\n"                                              \
				      : "=r"(value)                                                \
				      : "m"(*(const struct operand_##type *)(uintptr_t)address)    \
				      : "memory"                                                   \
				      : fault);                                                    \
		*to = value;                                                                       \
		return true;                                                                       \
	fault:                                                                                     \
		return false;                                                                      \
	}
LOAD_GUARDED(uint64_t, "movq", "q")
LOAD_GUARDED(uint32_t, "movl", "k")
LOAD_GUARDED(uint8_t, "movb", "b")
#elif defined(__aarch64__)
#define LOAD_GUARDED(type, instruction, register_form)                                             \
	static inline                                                                              \
		__attribute__((always_inline)) bool load_direct_##type(uint64_t address, type *to) \
	{                                                                                          \
		type value;                                                                        \
		__asm__ volatile goto("1: " instruction " %" register_form "0, [%1]\n"             \
				      ".pushsection pathprof_faults, \"a\"\n"                      \
				      ".balign 4\n"                                                \
				      ".long 1b - .\n"                                             \
				      ".long %l[fault] - .\n"                                      \
				      ".popsection\n"                                              \
				      : "=r"(value)                                                \
				      : "r"(address)                                               \
				      : "memory"                                                   \
				      : fault);                                                    \
		*to = value;                                                                       \
		return true;                                                                       \
	fault:                                                                                     \
		return false;                                                                      \
	}
LOAD_GUARDED(uint64_t, "ldr", "x")
LOAD_GUARDED(uint32_t, "ldr", "w")
LOAD_GUARDED(uint8_t, "ldrb", "w")
#else
#error "pathprof runs on x86-64 and aarch64"
#endif
#undef LOAD_GUARDED

static inline __attribute__((always_inline)) bool load_u64(struct reader reader, uint64_t address,
							   uint64_t *to)
{
	return reader.kind == READER_DIRECT ? load_direct_uint64_t(address, to)
					    : load_other(reader, address, to, sizeof(*to));
}

static inline __attribute__((always_inline)) bool load_u32(struct reader reader, uint64_t address,
							   uint32_t *to)
{
	return reader.kind == READER_DIRECT ? load_direct_uint32_t(address, to)
					    : load_other(reader, address, to, sizeof(*to));
}

static inline __attribute__((always_inline)) bool load_u8(struct reader reader, uint64_t address,
							  uint8_t *to)
{
	return reader.kind == READER_DIRECT ? load_direct_uint8_t(address, to)
					    : load_other(reader, address, to, sizeof(*to));
}

#endif
