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
 *   READER_REMOTE  another process, by process_vm_readv().
 *   READER_BLOCKS  another process, a page at a time, each page once: load_blocks.h.
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
	READER_BLOCKS,
};

struct load_blocks; /* load_blocks.h */

struct reader {
	enum reader_kind kind;
	pid_t pid;		    /* READER_REMOTE */
	struct load_blocks *blocks; /* READER_BLOCKS */
};

/**
 * load_recover - is this program counter a guarded load that faulted?
 * @pc: the interrupted program counter
 * Returns the address to continue at, or 0 if it is not ours. Signal-safe.
 */
uintptr_t load_recover(uintptr_t pc);

/** load_remote - READER_REMOTE's way. Returns false if not all of @length could be read. */
bool load_remote(pid_t pid, uint64_t address, void *to, size_t length);

/** load_from_blocks - READER_BLOCKS's way. Returns false if not all of @length could be read. */
bool load_from_blocks(struct load_blocks *blocks, uint64_t address, void *to, size_t length);

/** load_elsewhere - the ways that are no single instruction */
static inline bool load_elsewhere(struct reader reader, uint64_t address, void *to, size_t length)
{
	return reader.kind == READER_REMOTE ? load_remote(reader.pid, address, to, length)
					    : load_from_blocks(reader.blocks, address, to, length);
}

/*
 * The empty asm behind each load: gcc 11 to 13 lose an output of an asm goto in some places (gcc
 * bugs 110420 and 113921); an asm in the block that the asm goto falls through to keeps it.
 */
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
		__asm__("");                                                                       \
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
		__asm__("");                                                                       \
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
					    : load_elsewhere(reader, address, to, sizeof(*to));
}

static inline __attribute__((always_inline)) bool load_u32(struct reader reader, uint64_t address,
							   uint32_t *to)
{
	return reader.kind == READER_DIRECT ? load_direct_uint32_t(address, to)
					    : load_elsewhere(reader, address, to, sizeof(*to));
}

static inline __attribute__((always_inline)) bool load_u8(struct reader reader, uint64_t address,
							  uint8_t *to)
{
	return reader.kind == READER_DIRECT ? load_direct_uint8_t(address, to)
					    : load_elsewhere(reader, address, to, sizeof(*to));
}

#endif
