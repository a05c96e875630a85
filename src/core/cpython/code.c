/* SPDX-License-Identifier: MIT */
/* Reading and identifying a code object in the signal handler: direct loads, a version's numbers.
 */
#include "core/cpython/layouts.h"
#include "core/cpython/read_code.h"

typedef uint64_t identify_fn(const struct cpython *cpython, uint64_t code_address,
			     struct cpython_file_memo *file_memo);
typedef bool read_fn(const struct cpython *cpython, uint64_t code_address,
		     struct cpython_code *ret_code);

static const struct reader here = {.kind = READER_DIRECT};

/* One copy for each table, so that the compiler folds the table's numbers. */
#define X(name, walk)                                                                            \
	static uint64_t identify_in_##name(const struct cpython *cpython, uint64_t code_address, \
					   struct cpython_file_memo *file_memo)                  \
	{                                                                                        \
		const struct code_reading in = {                                                 \
			{.kind = READER_DIRECT}, &cpython_layout_##name, cpython};               \
                                                                                                 \
		return identify_code(&in, code_address, file_memo);                              \
	}                                                                                        \
	static bool read_in_##name(const struct cpython *cpython, uint64_t code_address,         \
				   struct cpython_code *ret_code)                                \
	{                                                                                        \
		const struct code_reading in = {                                                 \
			{.kind = READER_DIRECT}, &cpython_layout_##name, cpython};               \
                                                                                                 \
		return read_code(&in, code_address, ret_code);                                   \
	}
CPYTHON_LAYOUTS(X)
#undef X

static uint64_t identify_in_none(const struct cpython *cpython, uint64_t code_address,
				 struct cpython_file_memo *file_memo)
{
	(void)cpython;
	(void)code_address;
	(void)file_memo;
	return 0;
}

static bool read_in_none(const struct cpython *cpython, uint64_t code_address,
			 struct cpython_code *ret_code)
{
	(void)cpython;
	(void)code_address;
	(void)ret_code;
	return false;
}

uint64_t cpython_identify(const struct cpython *cpython, uint64_t code_address,
			  struct cpython_file_memo *file_memo)
{
	static identify_fn *const identify_in[NR_CPYTHON_LAYOUTS] = {[CPYTHON_LAYOUT_NONE] =
									     identify_in_none,
#define X(name, walk) [CPYTHON_LAYOUT_##name] = identify_in_##name,
								     CPYTHON_LAYOUTS(X)
#undef X
	};

	return identify_in[cpython->layout](cpython, code_address, file_memo);
}

bool cpython_read_code(const struct cpython *cpython, uint64_t code_address,
		       struct cpython_code *ret_code)
{
	static read_fn *const read_in[NR_CPYTHON_LAYOUTS] = {[CPYTHON_LAYOUT_NONE] = read_in_none,
#define X(name, walk) [CPYTHON_LAYOUT_##name] = read_in_##name,
							     CPYTHON_LAYOUTS(X)
#undef X
	};

	return read_in[cpython->layout](cpython, code_address, ret_code);
}

bool cpython_copy(uint64_t address, void *to, size_t length)
{
	uint8_t *at = to;

	for (; length >= 8; length -= 8, address += 8, at += 8) {
		uint64_t word;

		if (!load_u64(here, address, &word))
			return false;
		__builtin_memcpy(at, &word, sizeof(word));
	}
	for (; length; length--, address++, at++)
		if (!load_u8(here, address, at))
			return false;
	return true;
}
