/* SPDX-License-Identifier: MIT */
/*
 * Decoding what compilers and linkers make of a function that returns a thread-local variable. The
 * bytes are those of real builds, where a build is named, or an assembler's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/cpython/thread_local.h"
#include "core/cpython/world_for_tests.h"

#define CODE_BYTES 128

static const struct reader here = {.kind = READER_DIRECT};

/* Code, then the words that it refers to at a fixed distance. */
static struct {
	uint8_t code[CODE_BYTES];
	uint64_t words[4]; /* at code + 128 */
} image __attribute__((aligned(4096)));

static uint64_t place(const uint8_t *bytes, size_t length, uint64_t first, uint64_t second)
{
	memset(&image, 0xcc, sizeof(image));
	memcpy(image.code, bytes, length);
	image.words[0] = first;
	image.words[1] = second;
	return (uintptr_t)image.code;
}

#define X86(variable, first, second, ...)                                                    \
	({                                                                                   \
		const uint8_t bytes[] = {__VA_ARGS__};                                       \
		thread_local_decode_x86_64(here, place(bytes, sizeof(bytes), first, second), \
					   variable);                                        \
	})

#define AARCH64(variable, first, second, ...)                                              \
	({                                                                                 \
		const uint32_t words[] = {__VA_ARGS__};                                    \
		thread_local_decode_aarch64(                                               \
			here, place((const uint8_t *)words, sizeof(words), first, second), \
			variable);                                                         \
	})

static void assert_at(const struct cpython_thread_local *variable, uint32_t module, int64_t offset)
{
	assert_int_equal(variable->known, 1);
	assert_int_equal(variable->module, module);
	assert_int_equal(variable->offset, offset);
}

static void test_x86_64__static_models(void **state)
{
	struct cpython_thread_local variable = {0};

	(void)state;
	/* Debian's 3.13: endbr64; mov %fs:-0x18,%rax; ret */
	assert_true(X86(&variable, 0, 0, 0xf3, 0x0f, 0x1e, 0xfa, 0x64, 0x48, 0x8b, 0x04, 0x25, 0xe8,
			0xff, 0xff, 0xff, 0xc3));
	assert_at(&variable, 0, -0x18);
	/* mov %fs:0,%rax; lea -0x20(%rax),%rax; mov (%rax),%rax */
	assert_true(X86(&variable, 0, 0, 0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0x48, 0x8d, 0x80,
			0xe0, 0xff, 0xff, 0xff, 0x48, 0x8b, 0x00));
	assert_at(&variable, 0, -0x20);
	/* from local-dynamic: data16 mov %fs:0,%rax; mov -8(%rax),%rax */
	assert_true(X86(&variable, 0, 0, 0x66, 0x66, 0x66, 0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0,
			0x48, 0x8b, 0x80, 0xf8, 0xff, 0xff, 0xff));
	assert_at(&variable, 0, -8);
	/* mov ENTRY(%rip),%rax; mov %fs:(%rax),%rax */
	assert_true(X86(&variable, (uint64_t)-0x40, 0, 0x48, 0x8b, 0x05, CODE_BYTES - 7, 0, 0, 0,
			0x64, 0x48, 0x8b, 0x00));
	assert_at(&variable, 0, -0x40);
	/* the same, rewritten: mov $-0x40,%rax */
	assert_true(X86(&variable, 0, 0, 0x48, 0xc7, 0xc0, 0xc0, 0xff, 0xff, 0xff, 0x64, 0x48, 0x8b,
			0x00));
	assert_at(&variable, 0, -0x40);
	/* mov %fs:0,%rax; add ENTRY(%rip),%rax; mov (%rax),%rax */
	assert_true(X86(&variable, (uint64_t)-0x48, 0, 0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0,
			0x48, 0x03, 0x05, CODE_BYTES - 16, 0, 0, 0, 0x48, 0x8b, 0x00));
	assert_at(&variable, 0, -0x48);
}

static void test_x86_64__dynamic_models(void **state)
{
	struct cpython_thread_local variable = {0};

	(void)state;
	/* 3.12.1 and 3.13.0 with libpython: sub; data16 lea; data16 data16 rex.W call; mov (%rax)
	 */
	assert_true(X86(&variable, 3, 0x10, 0x48, 0x83, 0xec, 0x08, 0x66, 0x48, 0x8d, 0x3d,
			CODE_BYTES - 12, 0, 0, 0, 0x66, 0x66, 0x48, 0xe8, 1, 2, 3, 4, 0x48, 0x8b,
			0x00, 0x48, 0x83, 0xc4, 0x08, 0xc3));
	assert_at(&variable, 3, 0x10);
	/* Debian's libpython3.15: a frame, lea; call; pop; mov 0x28(%rax),%rax */
	assert_true(X86(&variable, 2, 0, 0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x48, 0x8d,
			0x3d, CODE_BYTES - 15, 0, 0, 0, 0xe8, 1, 2, 3, 4, 0x5d, 0x48, 0x8b, 0x80,
			0x28, 0, 0, 0, 0xc3));
	assert_at(&variable, 2, 0x28);
	/* lea PAIR(%rip),%rax; call *(%rax); mov %fs:(%rax),%rax */
	assert_true(X86(&variable, 1, (uint64_t)-0x58, 0x48, 0x8d, 0x05, CODE_BYTES - 7, 0, 0, 0,
			0xff, 0x10, 0x64, 0x48, 0x8b, 0x00));
	assert_at(&variable, 0, -0x58);
	/* the same, storage that is allocated when first used */
	{
		const uint8_t bytes[] = {0x48, 0x8d, 0x05, CODE_BYTES - 7, 0,	 0,   0,
					 0xff, 0x10, 0x64, 0x48,	   0x8b, 0x00};
		uint64_t at = place(bytes, sizeof(bytes), 1, (uintptr_t)&image.words[2]);

		image.words[2] = 7;
		image.words[3] = 0x30;
		assert_true(thread_local_decode_x86_64(here, at, &variable));
	}
	assert_at(&variable, 7, 0x30);
}

static void test_x86_64__a_function_that_calls_another_one(void **state)
{
	struct cpython_thread_local variable = {0};

	(void)state;
	/* push; mov; call +1; (nop) mov %fs:-0x10,%rax */
	assert_true(X86(&variable, 0, 0, 0x55, 0x48, 0x89, 0xe5, 0xe8, 1, 0, 0, 0, 0xc3, 0x55, 0x48,
			0x89, 0xe5, 0x64, 0x48, 0x8b, 0x04, 0x25, 0xf0, 0xff, 0xff, 0xff));
	assert_at(&variable, 0, -0x10);
	assert_false(X86(&variable, 0, 0, 0xe8, 0xfb, 0xff, 0xff, 0xff)); /* itself, for ever */
}

static void test_x86_64__other_code_is_refused(void **state)
{
	struct cpython_thread_local variable = {0};

	(void)state;
	/* 3.11: mov RUNTIME(%rip),%rax; mov 0x240(%rax),%rax: no thread-local variable */
	assert_false(X86(&variable, 0x1000, 0, 0x48, 0x8b, 0x05, CODE_BYTES - 7, 0, 0, 0, 0x48,
			 0x8b, 0x80, 0x40, 2, 0, 0));
	assert_false(X86(&variable, 0, 0, 0xc3));
	assert_false(X86(&variable, 0, 0, 0x31, 0xc0, 0xc3));
	assert_false(X86(&variable, 0, 0, 0x48, 0x8b, 0x00)); /* of nothing known */
	/* a pair that is not yet relocated */
	assert_false(X86(&variable, 0, 0, 0x48, 0x8d, 0x3d, CODE_BYTES - 7, 0, 0, 0, 0xe8, 1, 2, 3,
			 4, 0x48, 0x8b, 0x00));
	assert_false(X86(&variable, 0, 0, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
			 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
			 0x90, 0x90, 0x90, 0x90, 0x90));
	assert_int_equal(variable.known, 0);
}

static void test_aarch64__every_model(void **state)
{
	struct cpython_thread_local variable = {0};

	(void)state;
	/* mrs x0,tpidr_el0; add x0,x0,#0,lsl #12; ldr x0,[x0,#0x18] */
	assert_true(AARCH64(&variable, 0, 0, 0xd53bd040, 0x91400000, 0xf9400c00));
	assert_at(&variable, 0, 0x18);
	/* bti c; mrs x1,tpidr_el0; add x1,x1,#1,lsl #12; add x1,x1,#0x10; ldr x0,[x1] */
	assert_true(AARCH64(&variable, 0, 0, 0xd503245f, 0xd53bd041, 0x91400421, 0x91004021,
			    0xf9400020));
	assert_at(&variable, 0, 0x1010);
	/* mrs x1,tpidr_el0; adrp x0,.; ldr x0,[x0,#0x80]; ldr x0,[x1,x0] */
	assert_true(AARCH64(&variable, 0x40, 0, 0xd53bd041, 0x90000000, 0xf9404000, 0xf8606820));
	assert_at(&variable, 0, 0x40);
	/* stp x29,x30,[sp,#-16]!; mov x29,sp; adrp x0,.; ldr x1,[x0,#0x80]; add x0,x0,#0x80; blr
	 * x1; mrs x1,tpidr_el0; ldr x0,[x1,x0] */
	assert_true(AARCH64(&variable, 0x1234, 0x50, 0xa9bf7bfd, 0x910003fd, 0x90000000, 0xf9404001,
			    0x91020000, 0xd63f0020, 0xd53bd041, 0xf8606820));
	assert_at(&variable, 0, 0x50);
	assert_false(AARCH64(&variable, 0, 0, 0xd65f03c0));		/* ret */
	assert_false(AARCH64(&variable, 0, 0, 0xd53bd040, 0xf8606820)); /* x1 is not known */
}

static __thread uint64_t own_variable;

static __attribute__((noinline)) uint64_t own_getter(void)
{
	return own_variable;
}

/* Whatever model this build has. */
static void test_thread_local__of_this_very_program(void **state)
{
	struct cpython_thread_local variable = {0};
	uint64_t value = 0;

	(void)state;
	own_variable = 0x123456789;
	if (!thread_local_decode(here, (uintptr_t)own_getter, &variable))
		skip(); /* a sanitizer's code */
	assert_true(thread_local_load(&variable, &value));
	assert_int_equal(value, own_getter());
}

/* A module that no thread has used. */
static void test_thread_local__of_a_module_that_is_not_there(void **state)
{
	const struct cpython_thread_local variable = {.known = 1, .module = 60000, .offset = 8};
	uint64_t value;

	(void)state;
	assert_false(thread_local_load(&variable, &value));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x86_64__static_models),
		cmocka_unit_test(test_x86_64__dynamic_models),
		cmocka_unit_test(test_x86_64__a_function_that_calls_another_one),
		cmocka_unit_test(test_x86_64__other_code_is_refused),
		cmocka_unit_test(test_aarch64__every_model),
		cmocka_unit_test(test_thread_local__of_this_very_program),
		cmocka_unit_test(test_thread_local__of_a_module_that_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
