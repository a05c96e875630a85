/* SPDX-License-Identifier: MIT */
#include "agent/capture/capture_fixture_test.h"

#include <stdlib.h>

#define RANDOM_TICKS	 30000
#define LARGE_LINE_TABLE ((1u << 20) + 1)

static void test_capture__a_stack_becomes_a_chain(void **state)
{
	uint32_t leaf, middle, root;

	(void)state;
	call_from_native(1, 11);
	call(2, 22);
	call_from_native(3, 0);
	leaf = tick();
	assert_int_equal(fake.tid, 101);
	assert_python(leaf, 1003, 0, true);
	middle = node_at(leaf)->parent;
	assert_python(middle, 1002, 22, false);
	root = node_at(middle)->parent;
	assert_python(root, 1001, 11, true);
	assert_int_equal(node_at(root)->parent, 0);
	assert_int_equal(nodes_used(), 4);
}

static void test_capture__code_is_copied(void **state)
{
	const struct memory *m = &capture.memory;
	const struct code *code;

	(void)state;
	fake.codes[5] = (struct fake_code){.identity = 77,
					   .name = "Class.method",
					   .file = "/a/b.py",
					   .line_table = "\x80\x01xyz",
					   .first_line = 321};
	call(4, 1);
	call(5, 1);
	code = &m->codes[node_at(tick())->owner];
	assert_int_equal(code->first_line, 321);
	assert_int_equal(code->name_length, 12);
	assert_int_equal(code->name_width, 1);
	assert_memory_equal(m->text + code->name_at, "Class.method", 12);
	assert_int_equal(code->file_length, 7);
	assert_int_equal(code->file_width, 1);
	assert_memory_equal(m->text + code->file_at, "/a/b.py", 7);
	assert_int_equal(code->line_table_length, 5);
	assert_int_equal(code->line_table_kind, LINE_TABLE_CPYTHON_311);
	assert_memory_equal(m->text + code->line_table_at, "\x80\x01xyz", 5);
}

static void test_capture__a_huge_line_table_is_left_out(void **state)
{
	char *table = malloc(LARGE_LINE_TABLE + 1);
	char *name = malloc(5001);
	const struct code *code;

	(void)state;
	assert_non_null(table);
	assert_non_null(name);
	memset(table, 't', LARGE_LINE_TABLE);
	table[LARGE_LINE_TABLE] = 0;
	memset(name, 'n', 5000);
	name[5000] = 0;
	fake.codes[1].line_table = table;
	fake.codes[1].name = name;
	call(1, 1);
	code = &capture.memory.codes[node_at(tick())->owner];
	assert_int_equal(code->line_table_length, 0);
	assert_int_equal(code->line_table_kind, LINE_TABLE_NONE);
	assert_int_equal(code->name_length, 4096);
	assert_int_equal(code->file_at, code->name_at + 4096);
	free(table);
	free(name);
}

static void test_capture__a_repeated_stack_looks_nothing_up(void **state)
{
	uint32_t node;

	(void)state;
	for (uint32_t i = 0; i < 32; i++)
		call(i, i);
	node = tick();
	assert_int_equal(nodes_used(), 33);
	forget_index();
	assert_int_equal(tick(), node);
	assert_int_equal(tick(), node);
	assert_int_equal(nodes_used(), 33);
}

/* Only what is from the first difference on is looked up, here: made anew. */
static void test_capture__the_common_prefix_is_reused(void **state)
{
	uint32_t old, parent, leaf;

	(void)state;
	for (uint32_t i = 0; i < 10; i++)
		call(i, i);
	old = tick();
	forget_index();
	fake.frames[2].position += 100; /* the third from the leaf */
	leaf = tick();
	assert_int_equal(nodes_used(), 14);
	parent = node_at(node_at(leaf)->parent)->parent;
	assert_python(parent, 1007, 107, false);
	assert_int_equal(node_at(parent)->parent,
			 node_at(node_at(node_at(old)->parent)->parent)->parent);
	/* the same when only the mark of the entry or the code differs */
	fake.frames[0].entry = 1;
	assert_python(tick(), 1009, 9, true);
	assert_int_equal(nodes_used(), 15);
	fake.frames[0].code_address = fake_address(33);
	assert_python(tick(), 1033, 9, true);
	assert_int_equal(nodes_used(), 16);
}

/* A frame that is equal, but above one that is not, is another node. */
static void test_capture__equal_frames_over_another_root(void **state)
{
	uint32_t old;

	(void)state;
	call(1, 1);
	call(2, 2);
	call(3, 3);
	old = tick();
	fake.frames[2].position = 5;
	assert_int_not_equal(tick(), old);
	assert_int_equal(nodes_used(), 7);
	fake.frames[2].position = 1;
	assert_int_equal(tick(), old);
}

static void test_capture__returning_and_calling_again_looks_nothing_up(void **state)
{
	struct cpython_frame frames[3];
	uint32_t deep;

	(void)state;
	for (uint32_t i = 0; i < 6; i++)
		call(i, i);
	deep = tick();
	forget_index();
	memcpy(frames, fake.frames, sizeof(frames));
	memmove(&fake.frames[0], &fake.frames[3], 3 * sizeof(fake.frames[0]));
	fake.nr_frames = 3;
	assert_python(tick(), 1002, 2, false);
	memmove(&fake.frames[3], &fake.frames[0], 3 * sizeof(fake.frames[0]));
	memcpy(fake.frames, frames, sizeof(frames));
	fake.nr_frames = 6;
	assert_int_equal(tick(), deep);
	assert_int_equal(nodes_used(), 7);
}

/* But not where the shorter stack differed: what was beyond it hangs on another chain. */
static void test_capture__a_shorter_other_stack_ends_the_reuse(void **state)
{
	uint32_t deep;

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		call(i, i + 1);
	deep = tick();
	fake.nr_frames = 0;
	call(0, 1);
	call(1, 50);
	tick();
	call(2, 3);
	call(3, 4);
	assert_int_not_equal(tick(), deep);
	fake.frames[2].position = 2;
	assert_int_equal(tick(), deep);
}

static void test_capture__a_recycled_address_is_other_code(void **state)
{
	uint32_t old, new;

	(void)state;
	call(1, 4);
	call(2, 4);
	old = tick();
	fake.codes[2].identity = 5555;
	fake.codes[2].name = "other";
	new = tick();
	assert_int_not_equal(new, old);
	assert_python(old, 1002, 4, false);
	assert_python(new, 5555, 4, false);
	assert_memory_equal(capture.memory.text + capture.memory.codes[node_at(new)->owner].name_at,
			    "other", 5);
	/* and the first one again, elsewhere */
	fake.codes[9].identity = 1002;
	fake.frames[0].code_address = fake_address(9);
	assert_int_equal(tick(), old);
}

static void test_capture__recursion_reads_a_code_once_in_a_walk(void **state)
{
	(void)state;
	call(1, 1);
	for (uint32_t i = 0; i < 50; i++)
		call(2, i);
	tick();
	assert_int_equal(fake.reads, 2);
	/* and again in the next walk: an address is not trusted */
	tick();
	assert_int_equal(fake.reads, 4);
	assert_int_equal(atomic_load(&capture.memory.header->codes_used), 3);
}

/* Both in the unchanged part of the stack and in the changed one, in one walk. */
static void test_capture__memo_names_the_same_code_everywhere(void **state)
{
	uint32_t leaf;

	(void)state;
	call(2, 1);
	call(2, 2);
	call(2, 3);
	tick();
	fake.frames[0].position = 9;
	leaf = tick();
	assert_python(leaf, 1002, 9, false);
	assert_int_equal(node_at(leaf)->owner, node_at(node_at(leaf)->parent)->owner);
	assert_int_equal(fake.reads, 2);
}

static void test_capture__memo_is_not_taken_over_a_wrapping_epoch(void **state)
{
	(void)state;
	call(1, 1);
	slot->walk_epoch = 0;
	tick();
	assert_int_equal(slot->walk_epoch, 1);
	fake.codes[1].identity = 4242;
	slot->walk_epoch = UINT32_MAX;
	assert_python(tick(), 4242, 1, false);
}

static void test_capture__deeper_than_the_bound_is_truncated(void **state)
{
	uint32_t node, depth = 0, deep;

	(void)state;
	for (uint32_t i = 0; i < FRAMES_MAX + 10; i++)
		call(1, i);
	deep = tick();
	for (node = deep; node_at(node)->parent; node = node_at(node)->parent)
		assert_python(node, 1001, FRAMES_MAX + 9 - depth++, false);
	assert_int_equal(depth, FRAMES_MAX);
	assert_int_equal(kind_of(node), NODE_TRUNCATED);
	assert_int_equal(atomic_load(&slot->degraded[DEGRADED_TRUNCATED]), 1);
	assert_int_equal(slot->previous_depth, FRAMES_MAX + 1);
	forget_index();
	assert_int_equal(tick(), deep);
	assert_int_equal(atomic_load(&slot->degraded[DEGRADED_TRUNCATED]), 2);
	assert_int_equal(atomic_load(&slot->degraded[DEGRADED_UNREADABLE]), 0);
}

static void test_capture__exactly_the_bound_is_whole(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < FRAMES_MAX; i++)
		call(1, i);
	tick();
	assert_int_equal(nodes_used(), FRAMES_MAX + 1);
	assert_int_equal(atomic_load(&slot->degraded[DEGRADED_TRUNCATED]), 0);
}

static void test_capture__a_walk_that_fails_is_marked_at_the_root(void **state)
{
	uint32_t whole, cut;

	(void)state;
	call(1, 1);
	call(2, 2);
	whole = tick();
	fake.end = CPYTHON_END_UNREADABLE;
	cut = tick();
	assert_python(cut, 1002, 2, false);
	assert_python(node_at(cut)->parent, 1001, 1, false);
	assert_int_equal(kind_of(node_at(node_at(cut)->parent)->parent), NODE_UNREADABLE);
	assert_int_equal(atomic_load(&slot->degraded[DEGRADED_UNREADABLE]), 1);
	fake.end = CPYTHON_END_TRUNCATED;
	assert_int_not_equal(tick(), cut);
	fake.end = CPYTHON_END_ROOT;
	assert_int_equal(tick(), whole);
	fake.nr_frames = 0;
	fake.end = CPYTHON_END_UNREADABLE;
	assert_int_equal(kind_of(tick()), NODE_UNREADABLE);
}

static void check_unreadable_in_place(void)
{
	uint32_t leaf = tick();
	uint32_t marker = node_at(leaf)->parent;

	assert_python(leaf, 1003, 3, false);
	assert_int_equal(kind_of(marker), NODE_UNREADABLE);
	assert_int_equal(node_at(marker)->owner, 0);
	assert_python(node_at(marker)->parent, 1001, 1, false);
}

static void test_capture__unreadable_code_is_marked_in_place(void **state)
{
	uint32_t used;

	(void)state;
	call(1, 1);
	call(2, 2);
	call(3, 3);
	tick();
	fake.codes[2].identity = 0;
	check_unreadable_in_place();
	forget_index();
	used = nodes_used();
	check_unreadable_in_place();
	assert_int_equal(nodes_used(), used);
	call(2, 5); /* counted once for a sample */
	tick();
	assert_int_equal(atomic_load(&slot->degraded[DEGRADED_UNREADABLE]), 3);
	fake.codes[2].identity = 1002;
	fake.nr_frames = 3;
	memmove(&fake.frames[0], &fake.frames[1], 3 * sizeof(fake.frames[0]));
	assert_python(node_at(tick())->parent, 1002, 2, false);
}

static void test_capture__code_that_cannot_be_copied_is_unreadable(void **state)
{
	(void)state;
	call(1, 1);
	call(2, 2);
	call(2, 2);
	call(3, 3);
	fake.codes[2].uncopyable = true;
	fake.codes[2].identity = 6000;
	{
		uint32_t marker = node_at(tick())->parent;

		assert_int_equal(kind_of(marker), NODE_UNREADABLE);
		assert_int_equal(kind_of(node_at(marker)->parent), NODE_UNREADABLE);
		assert_int_equal(table_find_code(&capture.memory, 6000), 0);
	}
	fake.codes[2].uncopyable = false;
	assert_python(node_at(tick())->parent, 6000, 2, false);
}

static uint64_t next_random(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random >> 20;
}

/* Changes some of the stack and, now and then, what stands at an address. */
static void change_at_random(uint64_t *random)
{
	uint32_t pops = (uint32_t)(next_random(random) % 6);
	uint32_t pushes = (uint32_t)(next_random(random) % 6);

	while (pops-- && fake.nr_frames)
		memmove(&fake.frames[0], &fake.frames[1],
			--fake.nr_frames * sizeof(fake.frames[0]));
	while (pushes-- && fake.nr_frames < 30) {
		call((uint32_t)(next_random(random) % FAKE_CODES),
		     (uint32_t)(next_random(random) % 3));
		fake.frames[0].entry = next_random(random) % 4 == 0;
	}
	if (next_random(random) % 8 == 0)
		fake.codes[next_random(random) % FAKE_CODES].identity =
			next_random(random) % 5 ? 1000 + next_random(random) % 200 : 0;
	fake.end = next_random(random) % 10 ? CPYTHON_END_ROOT
					    : (enum cpython_end)(next_random(random) % 3);
}

static void assert_chain_is_the_stack(uint32_t node)
{
	for (size_t i = 0; i < fake.nr_frames; i++, node = node_at(node)->parent) {
		const struct cpython_frame *frame = &fake.frames[i];
		uint64_t identity = fake.codes[(frame->code_address - FAKE_ADDRESS) / 256].identity;

		assert_int_not_equal(node, 0);
		if (identity)
			assert_python(node, identity, frame->position, frame->entry);
		else
			assert_int_equal(kind_of(node), NODE_UNREADABLE);
	}
	if (fake.end != CPYTHON_END_ROOT) {
		assert_int_equal(kind_of(node), fake.end == CPYTHON_END_TRUNCATED
							? NODE_TRUNCATED
							: NODE_UNREADABLE);
		node = node_at(node)->parent;
	}
	assert_int_equal(node, 0);
}

static void test_capture__any_sequence_of_stacks_is_told_right(void **state)
{
	uint64_t random = 88172645463325252ull;

	(void)state;
	for (uint32_t i = 0; i < RANDOM_TICKS; i++) {
		uint64_t lost = atomic_load(&slot->lost[LOSS_TABLE_FULL]);

		change_at_random(&random);
		if (nodes_used() < sizes.nr_nodes - 100) {
			assert_chain_is_the_stack(tick());
			continue;
		}
		/* Now the table is full: lost, or told right. */
		tick_at(slot->last_ns + 1);
		if (atomic_load(&slot->lost[LOSS_TABLE_FULL]) == lost && slot->packet)
			assert_chain_is_the_stack(last_node());
	}
	assert_true(atomic_load(&slot->samples[0]) > 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CAPTURE_TEST(a_stack_becomes_a_chain),
		CAPTURE_TEST(code_is_copied),
		CAPTURE_TEST(a_huge_line_table_is_left_out),
		CAPTURE_TEST(a_repeated_stack_looks_nothing_up),
		CAPTURE_TEST(the_common_prefix_is_reused),
		CAPTURE_TEST(equal_frames_over_another_root),
		CAPTURE_TEST(returning_and_calling_again_looks_nothing_up),
		CAPTURE_TEST(a_shorter_other_stack_ends_the_reuse),
		CAPTURE_TEST(a_recycled_address_is_other_code),
		CAPTURE_TEST(recursion_reads_a_code_once_in_a_walk),
		CAPTURE_TEST(memo_names_the_same_code_everywhere),
		CAPTURE_TEST(memo_is_not_taken_over_a_wrapping_epoch),
		CAPTURE_TEST(deeper_than_the_bound_is_truncated),
		CAPTURE_TEST(exactly_the_bound_is_whole),
		CAPTURE_TEST(a_walk_that_fails_is_marked_at_the_root),
		CAPTURE_TEST(unreadable_code_is_marked_in_place),
		CAPTURE_TEST(code_that_cannot_be_copied_is_unreadable),
		CAPTURE_TEST(any_sequence_of_stacks_is_told_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
