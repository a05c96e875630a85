/* SPDX-License-Identifier: MIT */
/*
 * What the program itself holds and does not export: an interpreter that is linked into it
 * statically, without -rdynamic. Private to this room.
 *
 *   not stripped   the file's symbol table has every name
 *   stripped       a section of its own, .PyRuntime, has the interpreter's state; and the types
 *                  stand in the data from the start, with their names and sizes in them
 *
 * Read from /proc/self/exe, if that is the image that runs (not where ld.so was called by name).
 * Not signal-safe; no load here can fault while the file is not cut short.
 */
#ifndef PATHPROF_CORE_CPYTHON_HIDDEN_H
#define PATHPROF_CORE_CPYTHON_HIDDEN_H

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hidden {
	const uint8_t *file; /* mapped */
	size_t file_bytes;
	uint64_t base; /* what the loader added to the file's addresses */
	const ElfW(Phdr) * segments;
	size_t nr_segments;

	const ElfW(Sym) * symbols; /* NULL: stripped */
	size_t nr_symbols;
	const char *names; /* ends with a NUL */
	size_t names_bytes;

	uint64_t runtime; /* address of the section .PyRuntime; 0: none */
	uint64_t runtime_bytes;
};

/** hidden_open - map the program's file; false where it cannot be read. hidden_close() it. */
bool hidden_open(struct hidden *ret_hidden);

void hidden_close(struct hidden *hidden);

/** hidden_symbol - address of a symbol of the file's table; 0: none of that name */
uint64_t hidden_symbol(const struct hidden *hidden, const char *name, uint64_t *ret_bytes);

/* A type as it stands in the program's data. */
struct hidden_type {
	const char *name;
	uint64_t basic_size, item_size;
	uint64_t basic_size_at; /* in the type; its name's address stands before, its item size
				 * behind it, a word each */
};

/** hidden_type_find - address of the only type that is so; 0: none, or several */
uint64_t hidden_type_find(const struct hidden *hidden, const struct hidden_type *type);

/**
 * hidden_constant - the only value among the program's constants that is @value but for @mask
 * Of aligned words. Returns false where there is none, or several.
 */
bool hidden_constant(const struct hidden *hidden, uint64_t value, uint64_t mask,
		     uint64_t *ret_word);

#endif
