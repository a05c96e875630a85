/* SPDX-License-Identifier: MIT */
/*
 * The objects that the dynamic loader has loaded, read without calling it: its list (struct
 * r_debug, which is there for debuggers) and the objects' symbol tables. Private to this room.
 */
#ifndef PATHPROF_CORE_CPYTHON_LOADED_H
#define PATHPROF_CORE_CPYTHON_LOADED_H

#include "core/base/load.h"

/**
 * loaded_symbol - address of a symbol that an object defines; 0: it does not
 * @object: address of the loader's struct link_map
 * By the GNU hash table, every object's since 2006; bounded. Signal-safe.
 */
uint64_t loaded_symbol(struct reader reader, uint64_t object, const char *name);

/** loaded_symbol_bytes - the size that the object states of the symbol; 0: none, or no symbol */
uint64_t loaded_symbol_bytes(struct reader reader, uint64_t object, const char *name);

/**
 * loaded_path - copy the path of an object's file, cut to @room bytes with its NUL
 * Empty for the program itself, or where it cannot be read. Signal-safe.
 */
void loaded_path(struct reader reader, uint64_t object, char *to, size_t room);

/** loaded_first - the first object of the loader's list; 0: none. Signal-safe. */
uint64_t loaded_first(struct reader reader, uint64_t r_debug);

/**
 * loaded_next - the object behind @object in *@ret_next; 0: it is the last
 * Returns false where @object is in the list no more. Signal-safe.
 */
bool loaded_next(struct reader reader, uint64_t r_debug, uint64_t object, uint64_t *ret_next);

#endif
