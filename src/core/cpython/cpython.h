/* SPDX-License-Identifier: MIT */
/*
 * CPython seen from outside: find the thread state, walk the frames, read code objects, decode
 * line tables. Nothing is called in the interpreter.
 *
 * Differences come in eras: one walk per era (walk_311.h, ...), one constant table of offsets
 * per version (layout_311.h, ...). Outside this room nothing names a CPython structure or version.
 *
 * The functions here look at their own process; remote.h has those that look at another one.
 */
#ifndef PATHPROF_CORE_CPYTHON_CPYTHON_H
#define PATHPROF_CORE_CPYTHON_CPYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/errbuf.h"
#include "core/base/load.h"

/* Where each thread of a process keeps a variable of one word. */
struct cpython_thread_local {
	uint32_t known;	 /* 0: not */
	uint32_t module; /* the loader's number of it; 0: at a distance from the thread pointer */
	int64_t offset;	 /* in the module's storage; or that distance */
};

/*
 * One interpreter in a process, found and checked. Constant after cpython_find(). Plain data: holds
 * for that process wherever it is read.
 */
struct cpython {
	uint32_t layout;      /* number of its table; 0: none found, or not readable */
	uint32_t version;     /* as Py_Version: 0x030b02f0 */
	uint64_t runtime;     /* address of _PyRuntime */
	uint64_t code_type;   /* address of PyCode_Type */
	uint64_t string_type; /* address of PyUnicode_Type */
	uint64_t bytes_type;  /* address of PyBytes_Type */

	/* From 3.12 on: the state that a thread has attached, and the one that it had last. */
	struct cpython_thread_local current_state;
	struct cpython_thread_local last_state; /* from 3.15 on; before, a key of the runtime */
};

/* A frame as the walk finds it, leaf first. */
struct cpython_frame {
	uint64_t code_address;
	uint32_t position; /* code unit (2 bytes) of the instruction + 1; 0: not begun */
	uint32_t entry;	   /* 1: entered from native code */
};

enum cpython_end {
	CPYTHON_END_ROOT,	/* the walk reached the outermost frame */
	CPYTHON_END_TRUNCATED,	/* more frames than room */
	CPYTHON_END_UNREADABLE, /* a load failed, or a frame is no frame */
};

/* A text in the target: a str object's characters. */
struct cpython_text {
	uint64_t address; /* of the first character */
	uint32_t length;  /* characters */
	uint32_t width;	  /* bytes per character: 1 (ASCII or Latin-1), 2 or 4 */
};

/* What a sample needs of a code object. */
struct cpython_code {
	uint32_t first_line;
	uint32_t line_table_length; /* bytes */
	uint64_t line_table;	    /* address of the bytes */
	struct cpython_text name;   /* qualified name */
	struct cpython_text file;
	uint8_t line_table_kind; /* enum line_table_kind */
};

/**
 * cpython_find - find the interpreter in this process by its dynamic symbols and check its layout
 * @ret_cpython: zeroed where none is there
 * Returns 0 (found and readable), -ENOENT (no interpreter in this process), -ENOTSUP (its version
 * or layout is not known: the sentence says which). Not signal-safe.
 */
int cpython_find(struct cpython *ret_cpython, struct errbuf *err);

/* Where the search for an interpreter that is loaded later stands: in the loader's list. */
struct cpython_late {
	uint64_t r_debug;   /* the loader's; 0: there is no search */
	uint64_t seen;	    /* the last object that was looked at */
	uint64_t waits_for; /* holds an interpreter that has not begun; 0: none */
	uint32_t busy;

	/* What was found, readable or not. */
	uint32_t version;	/* as Py_Version; 0: older than 3.11 */
	uint32_t runtime_bytes; /* as cpython_runtime_bytes() has it */
	uint64_t object;	/* the loader's, that holds it */
};

enum cpython_late_found {
	CPYTHON_LATE_NONE,
	CPYTHON_LATE_READABLE,
	CPYTHON_LATE_UNREADABLE, /* of a version or build that nobody taught */
};

/** cpython_late_begin - search from now on. After cpython_find() found none. Not signal-safe. */
void cpython_late_begin(struct cpython_late *late);

/**
 * cpython_late_look - was an interpreter loaded since, also by dlopen(RTLD_LOCAL)?
 * @cpython: filled when it says CPYTHON_LATE_READABLE, the layout last and with release: other
 * threads read the layout with acquire. Nothing but layout 0 before.
 * Says so once; from then on CPYTHON_LATE_NONE. Costs three loads while the loader has loaded
 * nothing new; else some 100 loads for each new object, at most 16 a call. The loads are guarded.
 * Signal-safe, from any thread.
 */
enum cpython_late_found cpython_late_look(struct cpython_late *late, struct cpython *cpython);

/**
 * cpython_late_path - the path of the library that holds what cpython_late_look() found
 * Cut to @room bytes with its NUL; empty where it cannot be read. Signal-safe.
 */
void cpython_late_path(const struct cpython_late *late, char *to, size_t room);

/**
 * cpython_runtime_bytes - size of the interpreter's state, from the symbol at its runtime's address
 * The main interpreter's lock lies in there. Returns 0 where that is not known. Not signal-safe.
 */
uint32_t cpython_runtime_bytes(const struct cpython *cpython);

/**
 * cpython_thread_state - address of the calling thread's running thread state
 * @tid: the calling thread's id
 * @ret_holds_lock: does the thread hold its interpreter's lock; of free-threaded builds: is it
 * attached; false where it returns 0
 * Returns 0 where the thread never ran Python. Also right while the thread has released the
 * interpreter lock, and for sub-interpreters. Signal-safe; calls only pthread_getspecific(),
 * which in glibc is loads from the thread's own block (2.36: nptl/pthread_getspecific.c).
 */
uint64_t cpython_thread_state(const struct cpython *cpython, uint32_t tid, bool *ret_holds_lock);

/**
 * cpython_runs_jitted - does the thread, which holds the lock, run code that the JIT made?
 * It writes positions only where somebody might ask: the leaf's may be that of an earlier
 * instruction of the same frame, and is right while a function in C is called. Signal-safe.
 */
bool cpython_runs_jitted(const struct cpython *cpython, uint64_t thread_state);

/**
 * cpython_walk - the Python frames of a thread state, leaf first (direct loads)
 * @frames: room for @max frames
 * @ret_end: how the walk ended
 * Returns the number of frames. Signal-safe.
 * Cost: four loads a frame (five from 3.12 on) and as many for a code object, which is checked once
 * where frames of it follow each other; no branches that depend on the version.
 */
size_t cpython_walk(const struct cpython *cpython, uint64_t thread_state,
		    struct cpython_frame *frames, size_t max, enum cpython_end *ret_end);

/* File names' hashes, within one handler run; zeroed at its start. */
#define CPYTHON_FILE_MEMO_ENTRIES 8
struct cpython_file_memo {
	struct {
		uint64_t address; /* of the str object; 0: empty */
		uint64_t hash;
	} entries[CPYTHON_FILE_MEMO_ENTRIES];
};

/**
 * cpython_identify - the identity of a code object (direct loads)
 * A hash of the content (qualified name, file name, first line, line table), since a code object
 * dies and its address comes back, with equal first line, pointers and lengths.
 * Returns 0 if it cannot be read or is no code object. Signal-safe.
 */
uint64_t cpython_identify(const struct cpython *cpython, uint64_t code_address,
			  struct cpython_file_memo *file_memo);

/**
 * cpython_read_code - what a recording keeps of a code object (direct loads)
 * Returns false if it cannot be read or is no code object. Signal-safe.
 */
bool cpython_read_code(const struct cpython *cpython, uint64_t code_address,
		       struct cpython_code *ret_code);

/**
 * cpython_copy - copy bytes of the target that cpython_read_code() described
 * Returns false where they cannot be read. Signal-safe.
 */
bool cpython_copy(uint64_t address, void *to, size_t length);

/**
 * cpython_line - the source line of an instruction; for use when reading a recording
 * @kind: enum line_table_kind
 * @position: as in struct cpython_frame
 * Returns the line, @first_line for position 0, or 0 where the table has none. Never reads past
 * @length. Hostile tables are survived.
 */
uint32_t cpython_line(unsigned int kind, const uint8_t *table, size_t length, uint32_t first_line,
		      uint32_t position);

/**
 * cpython_text_utf8 - characters as they stand in the target, as UTF-8 text
 * NUL and control characters are written \xNN, lone surrogates \uNNNN.
 * Returns a heap string, the caller's to free; NULL: out of memory.
 */
char *cpython_text_utf8(const uint8_t *characters, uint32_t length, unsigned int width);

#endif
