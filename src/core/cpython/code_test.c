/* SPDX-License-Identifier: MIT */
/*
 * Reading and identifying code objects. The objects end at an unmapped page or at each other: a
 * load past an end would fail the read or change the hash.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/cpython/world_for_tests.h"
#include "core/event/event.h"

#define LENGTHS 300 /* past four rounds of the hash */

static int setup(void **state)
{
	static struct world world;

	*state = &world;
	return world_init(&world) ? 0 : -1;
}

static int teardown(void **state)
{
	world_release(*state);
	return 0;
}

static uint64_t identity(struct world *world, uint64_t code)
{
	struct cpython_file_memo memo = {0};

	return cpython_identify(&world->cpython, code, &memo);
}

static uint64_t identity_of(struct world *world, const char *name, const char *file,
			    const void *table, size_t length)
{
	return identity(world, world_code(world, world_ascii(world, name), world_ascii(world, file),
					  world_bytes(world, table, length), 4));
}

static void test_read_code__gives_what_it_holds(void **state)
{
	struct world *world = world_enter(state);
	static const uint16_t greek[] = {0x3a9, 'x'};
	static const uint8_t table[] = {0x80, 0x00, 0x81};
	uint64_t line_table = world_bytes(world, table, sizeof(table));
	uint64_t name = world_string(world, greek, 2, 2, false);
	uint64_t code = world_code(world, name, world_ascii(world, "a.py"), line_table, 4);
	struct cpython_code read;
	uint8_t copy[4];

	assert_true(cpython_read_code(&world->cpython, code, &read));
	assert_int_equal(read.first_line, 10);
	assert_int_equal(read.line_table_kind, LINE_TABLE_CPYTHON_311);
	assert_int_equal(read.line_table_length, 3);
	assert_true(cpython_copy(read.line_table, copy, 3));
	assert_memory_equal(copy, table, 3);
	assert_true(read.name.length == 2 && read.name.width == 2);
	assert_true(cpython_copy(read.name.address, copy, 4));
	assert_memory_equal(copy, greek, 4);
	assert_true(read.file.length == 4 && read.file.width == 1);
	assert_true(cpython_copy(read.file.address, copy, 4));
	assert_memory_equal(copy, "a.py", 4);
}

/* Sorted: equal neighbours are a collision. */
static int by_value(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

static void assert_all_differ(uint64_t *identities, size_t nr)
{
	qsort(identities, nr, sizeof(*identities), by_value);
	assert_true(identities[0]);
	for (size_t i = 1; i < nr; i++)
		assert_true(identities[i] != identities[i - 1]);
}

static void test_identity__depends_on_every_byte_of_every_length(void **state)
{
	struct world *world = world_enter(state);
	uint64_t identities[LENGTHS + 1];
	uint8_t table[LENGTHS] = {0};

	for (size_t length = 0; length < LENGTHS; length++) {
		for (size_t i = 0; i < length; i++) {
			table[i] = 1;
			identities[i] = identity_of(world, "n", "f", table, length);
			table[i] = 0;
			world->free = WORLD_BYTES;
		}
		identities[length] = identity_of(world, "n", "f", table, length);
		world->free = WORLD_BYTES;
		assert_all_differ(identities, length + 1);
	}
}

static void test_identity__is_of_the_content_not_of_the_address(void **state)
{
	struct world *world = world_enter(state);
	uint8_t table[LENGTHS] = {1, 2, 3};

	for (size_t length = 0; length < LENGTHS; length++) {
		uint64_t first = identity_of(world, "name", "file.py", table, length);

		world_make(world, 1 + length % 7);
		assert_true(first && first == identity_of(world, "name", "file.py", table, length));
		world->free = WORLD_BYTES;
	}
}

static void test_identity__depends_on_each_part(void **state)
{
	struct world *world = world_enter(state);
	uint64_t text = world_ascii(world, "ab"), table = world_bytes(world, "ab", 2);
	uint64_t wide = world_string(world, "a\0b", 2, 2, false);
	uint64_t latin1 = world_string(world, "\xe9", 1, 1, false);
	uint64_t line = world_code(world, text, text, table, 4);
	uint64_t identities[] = {
		identity(world, world_code(world, text, text, table, 4)),
		identity(world, world_code(world, wide, text, table, 4)),
		identity(world, world_code(world, text, wide, table, 4)),
		identity(world, world_code(world, latin1, text, table, 4)),
		identity_of(world, "x", "ab", "ab", 2),
		identity_of(world, "ab", "x", "ab", 2),
		identity_of(world, "ab", "ab", "x", 1),
		identity_of(world, "", "", "", 0),
		identity_of(world, "a", "bab", "ab", 2),
		identity_of(world, "aba", "b", "ab", 2),
		0,
	};

	world_put_u32(line + world_layout(world)->code_first_line, 11);
	identities[10] = identity(world, line);
	assert_all_differ(identities, 11);
	assert_true(identity(world, world_code(world, text, text, table, 9)) ==
		    identity_of(world, "ab", "ab", "ab", 2));
}

static void test_identity__lines_alone_never_collide(void **state)
{
	struct world *world = world_enter(state);
	enum { LINES = 100000 };
	uint64_t *identities = malloc(LINES * sizeof(*identities));
	uint64_t text = world_ascii(world, "f");
	uint64_t code = world_code(world, text, text, world_bytes(world, "\x80", 1), 4);

	assert_non_null(identities);
	for (uint32_t i = 0; i < LINES; i++) {
		world_put_u32(code + world_layout(world)->code_first_line, i);
		identities[i] = identity(world, code);
	}
	assert_all_differ(identities, LINES);
	free(identities);
}

static void test_read_code__cuts_what_is_too_long(void **state)
{
	struct world *world = world_enter(state);
	static char name[5000];
	static uint8_t table[300000];
	struct cpython_code read;
	uint64_t text, code;

	memset(name, 'n', sizeof(name) - 1);
	text = world_ascii(world, name);
	code = world_code(world, text, text, world_bytes(world, table, sizeof(table)), 4);
	assert_true(cpython_read_code(&world->cpython, code, &read));
	assert_int_equal(read.name.length, 512);
	assert_int_equal(read.file.length, 4096);
	assert_int_equal(read.line_table_length, 262144);
}

/* Within one run a file name is hashed once; in the next one it is hashed again. */
static void test_identify__remembers_file_names_for_one_run(void **state)
{
	struct world *world = world_enter(state);
	uint64_t name = world_ascii(world, "n"), file = world_ascii(world, "file.py");
	uint64_t table = world_bytes(world, "\x80", 1);
	uint64_t code = world_code(world, name, file, table, 4);
	uint64_t other = world_code(world, file, name, table, 4);
	struct cpython_file_memo memo = {0}, fresh = {0};
	uint64_t before = cpython_identify(&world->cpython, code, &memo);

	assert_true(before != 0 && before == identity(world, code));
	((char *)(uintptr_t)(file + world_layout(world)->string_ascii_data))[0] = 'F';
	assert_true(cpython_identify(&world->cpython, code, &memo) == before);
	assert_true(cpython_identify(&world->cpython, code, &fresh) != before);
	assert_true(cpython_identify(&world->cpython, other, &memo) == identity(world, other));
}

static void assert_refused(struct world *world, uint64_t name, uint64_t file, uint64_t line_table)
{
	struct cpython_code read = {.first_line = 4711};
	uint64_t code = world_code(world, name, file, line_table, 4);

	assert_int_equal(identity(world, code), 0);
	/* Reading alone does not look at the characters. */
	if (!cpython_read_code(&world->cpython, code, &read))
		assert_int_equal(read.first_line, 4711);
}

static void test_read_code__refuses_what_is_no_code_object(void **state)
{
	struct world *world = world_enter(state);
	const struct cpython_layout *layout = world_layout(world);
	uint64_t text = world_ascii(world, "text"), table = world_bytes(world, "\x80", 1);
	uint64_t odd = world_ascii(world, "odd");

	assert_int_equal(identity(world, 8), 0);
	assert_int_equal(identity(world, world_end(world)), 0);
	assert_int_equal(identity(world, text), 0);
	assert_int_equal(identity(world, (uint64_t)1 << 62), 0);
	assert_refused(world, table, text, table);
	assert_refused(world, text, table, table);
	assert_refused(world, text, text, text);
	assert_refused(world, 0, text, table);
	assert_refused(world, text, 8, table);
	assert_refused(world, text, text, world_end(world));
	world_put_u32(odd + layout->string_state,
		      1u << layout->string_kind_shift); /* not compact */
	assert_refused(world, odd, text, table);
	world_put_u32(odd + layout->string_state, layout->string_compact_bit); /* no width */
	assert_refused(world, odd, text, table);
}

/* Objects at the very end of the mapping whose lengths are lies. */
static void test_read_code__lengths_that_leave_the_mapping_are_refused(void **state)
{
	struct world *world = world_enter(state);
	const struct cpython_layout *layout = world_layout(world);
	uint64_t table = world_bytes(world, "\x80\0\0", 3);
	uint64_t text = world_ascii(world, "text");

	assert_true(identity(world, world_code(world, text, text, table, 4)));
	world_put(table + layout->object_size, 4);
	assert_refused(world, text, text, table);
	world_put(table + layout->object_size, UINT64_MAX);
	assert_refused(world, text, text, table);
}

static void test_copy__copies_exactly_or_refuses(void **state)
{
	struct world *world = world_enter(state);
	uint8_t source[40], copy[40];
	uint64_t at;

	for (uint8_t i = 0; i < sizeof(source); i++)
		source[i] = i;
	at = world_bytes(world, source, sizeof(source)) + world_layout(world)->bytes_data;
	for (size_t length = 0; length < sizeof(copy); length++) {
		memset(copy, 0xff, sizeof(copy));
		assert_true(cpython_copy(at + sizeof(source) - length, copy, length));
		assert_memory_equal(copy, source + sizeof(source) - length, length);
		assert_int_equal(copy[length], 0xff);
		assert_false(cpython_copy(at + sizeof(source) - length, copy, length + 1));
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_read_code__gives_what_it_holds),
		TEST(test_read_code__cuts_what_is_too_long),
		TEST(test_identify__remembers_file_names_for_one_run),
		TEST(test_read_code__refuses_what_is_no_code_object),
		TEST(test_read_code__lengths_that_leave_the_mapping_are_refused),
		TEST(test_identity__depends_on_every_byte_of_every_length),
		TEST(test_identity__is_of_the_content_not_of_the_address),
		TEST(test_identity__depends_on_each_part),
		TEST(test_identity__lines_alone_never_collide),
		TEST(test_copy__copies_exactly_or_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
