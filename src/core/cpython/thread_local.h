/* SPDX-License-Identifier: MIT */
/*
 * Thread-local variables of the interpreter, found without a symbol and read without a call.
 * Private to this room.
 *
 * The variables are no dynamic symbols, but exported functions return them: their first
 * instructions say where the variable is. In the handler its address is computed as
 * __tls_get_addr() would, which itself may allocate.
 */
#ifndef PATHPROF_CORE_CPYTHON_THREAD_LOCAL_H
#define PATHPROF_CORE_CPYTHON_THREAD_LOCAL_H

#include "core/base/load.h"
#include "core/cpython/cpython.h"

/**
 * thread_local_decode - where the variable is that the function at @getter returns
 * Reads this machine's instructions, of the forms that compilers and linkers make for each model of
 * thread-local storage (local-exec, initial-exec, general- and local-dynamic, descriptors).
 * Returns false where the instructions are others. Signal-safe.
 */
bool thread_local_decode(struct reader reader, uint64_t getter,
			 struct cpython_thread_local *ret_variable);

/* The two machines' ways; both are always there, for the tests. */
bool thread_local_decode_x86_64(struct reader reader, uint64_t getter,
				struct cpython_thread_local *ret_variable);
bool thread_local_decode_aarch64(struct reader reader, uint64_t getter,
				 struct cpython_thread_local *ret_variable);

/**
 * thread_local_descriptor - the variable of a pair {function, argument} of a TLS descriptor
 * glibc's argument is the distance from the thread pointer, or for storage that is allocated when
 * first used the address of {module, offset}.
 */
bool thread_local_descriptor(struct reader reader, uint64_t argument,
			     struct cpython_thread_local *ret_variable);

/**
 * thread_local_load - the calling thread's value of a variable of one word
 * Returns false where the thread never used the module's storage, or it cannot be read. In glibc's
 * layout. Signal-safe.
 */
bool thread_local_load(const struct cpython_thread_local *variable, uint64_t *ret_value);

#endif
