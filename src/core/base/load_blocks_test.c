/* SPDX-License-Identifier: MIT */
/* Pages of another process: here of this one, by its own id. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/load_blocks.h"

#define PAGES 200

static struct load_blocks *blocks;

/* PAGES pages whose words hold their own address; the page after them is not readable. */
static uint64_t *memory;

static int setup(void **state)
{
	size_t bytes = (size_t)PAGES * LOAD_BLOCK_BYTES;

	(void)state;
	blocks = calloc(1, sizeof(*blocks));
	memory = mmap(NULL, bytes + LOAD_BLOCK_BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!blocks || memory == MAP_FAILED)
		return -1;
	for (size_t i = 0; i < bytes / 8; i++)
		memory[i] = (uintptr_t)&memory[i];
	load_blocks_begin(blocks, getpid());
	return mprotect((uint8_t *)memory + bytes, LOAD_BLOCK_BYTES, PROT_NONE);
}

static int teardown(void **state)
{
	(void)state;
	munmap(memory, (size_t)(PAGES + 1) * LOAD_BLOCK_BYTES);
	free(blocks);
	return 0;
}

static uint64_t word_at(uint64_t address)
{
	const struct reader reader = {.kind = READER_BLOCKS, .blocks = blocks};
	uint64_t word = 0;

	assert_true(load_u64(reader, address, &word));
	return word;
}

static uint64_t page(unsigned int number)
{
	return (uintptr_t)memory + (uint64_t)number * LOAD_BLOCK_BYTES;
}

static void test_blocks__a_page_is_read_once(void **state)
{
	(void)state;
	for (uint64_t at = page(3); at < page(4); at += 8)
		assert_int_equal(word_at(at), at);
	assert_int_equal(blocks->nr_calls, 1);
}

static void test_blocks__what_is_wanted_is_read_with_the_next_miss(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 20; i++) {
		load_blocks_want(blocks, page(i) + 8 * i);
		load_blocks_want(blocks, page(i));
	}
	for (unsigned int i = 0; i < 20; i++)
		assert_int_equal(word_at(page(i) + 16), page(i) + 16);
	assert_int_equal(blocks->nr_calls, 1);
}

static void test_blocks__any_number_of_pages_in_any_order(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 20 * PAGES; i++) {
		uint64_t at = page(i * 37 % PAGES) + i % 512 * 8;

		load_blocks_want(blocks, page(i * 11 % PAGES));
		assert_int_equal(word_at(at), at);
	}
}

static void test_blocks__a_load_may_lie_in_two_pages(void **state)
{
	uint64_t at = page(5) - 3, word, expected;

	(void)state;
	word = word_at(at);
	memcpy(&expected, (const void *)(uintptr_t)at, sizeof(expected));
	assert_int_equal(word, expected);
}

static void test_blocks__what_cannot_be_read_fails_alone(void **state)
{
	const struct reader reader = {.kind = READER_BLOCKS, .blocks = blocks};
	const uint64_t bad[] = {page(PAGES), page(PAGES) - 4, 8, UINT64_MAX - 3,
				0xffff800000000000};
	uint64_t word;
	uint8_t byte;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		load_blocks_want(blocks, page(1));
		load_blocks_want(blocks, bad[i]);
		load_blocks_want(blocks, page(2));
		assert_false(load_u64(reader, bad[i], &word));
		assert_int_equal(word_at(page(1)), page(1));
		assert_int_equal(word_at(page(2)), page(2));
		load_blocks_want(blocks, bad[i]);
		load_blocks_want(blocks, page(7));
		assert_int_equal(word_at(page(7)), page(7));
		load_blocks_begin(blocks, getpid());
	}
	assert_true(load_u8(reader, page(PAGES) - 1, &byte));
}

static void test_blocks__begin_forgets(void **state)
{
	(void)state;
	assert_int_equal(word_at(page(0)), page(0));
	memory[0] = 7;
	assert_int_equal(word_at(page(0)), page(0));
	load_blocks_begin(blocks, getpid());
	assert_int_equal(word_at(page(0)), 7);
	memory[0] = 8;
	blocks->round = UINT32_MAX; /* the rounds wrap */
	load_blocks_begin(blocks, getpid());
	assert_int_equal(word_at(page(0)), 8);
}

static void test_blocks__lists_what_was_read(void **state)
{
	const struct reader reader = {.kind = READER_BLOCKS, .blocks = blocks};
	uint64_t pages[4], word;

	(void)state;
	load_blocks_want(blocks, page(2) + 7);
	word_at(page(5));
	load_blocks_want(blocks, page(9));
	assert_false(load_u64(reader, 8, &word));
	assert_int_equal(load_blocks_list(blocks, pages, 1), 1);
	assert_int_equal(load_blocks_list(blocks, pages, 4), 2);
	assert_int_equal(pages[0] + pages[1], page(2) + page(5));
	load_blocks_begin(blocks, getpid());
	assert_int_equal(load_blocks_list(blocks, pages, 4), 0);
}

static void test_blocks__another_process_that_is_gone(void **state)
{
	const struct reader reader = {.kind = READER_BLOCKS, .blocks = blocks};
	uint64_t word;

	(void)state;
	load_blocks_begin(blocks, -1);
	assert_false(load_u64(reader, page(0), &word));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_blocks__a_page_is_read_once),
		TEST(test_blocks__what_is_wanted_is_read_with_the_next_miss),
		TEST(test_blocks__any_number_of_pages_in_any_order),
		TEST(test_blocks__a_load_may_lie_in_two_pages),
		TEST(test_blocks__what_cannot_be_read_fails_alone),
		TEST(test_blocks__begin_forgets),
		TEST(test_blocks__lists_what_was_read),
		TEST(test_blocks__another_process_that_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
