/* SPDX-License-Identifier: MIT */
/*
 * The walk of 3.12 and later over made-up interpreters, whole and broken: 3.12 (through cframes),
 * 3.14, 3.14 free-threaded (copies of the instructions) and 3.15.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/cpython/remote.h"
#include "core/cpython/world_for_tests.h"

#define ROOM	       16
#define FRAME_BYTES    128 /* of every frame made here: FRAME_WORDS of its code object */
#define FRAME_WORDS    (FRAME_BYTES / 8)
#define STATE_BYTES    512
#define STATE_DISTANCE 8192 /* from the stack, and more than a state is long */
#define NR_UNITS       10
#define HIDDEN	       NR_UNITS /* first traceable unit of the interpreter's own code */

enum owner {
	THREAD,
	GENERATOR,
	NONE = 3, /* an evaluation loop's own frame */
};

static const uint32_t layouts[] = {CPYTHON_LAYOUT_312, CPYTHON_LAYOUT_313, CPYTHON_LAYOUT_314,
				   CPYTHON_LAYOUT_314t, CPYTHON_LAYOUT_315};

static struct world world;
static const struct cpython_layout *layout;
static uint64_t memory_end; /* of the thread's frames, which lie one behind the other */

static void begin(uint32_t number)
{
	void *entered = &world;

	world_enter(&entered);
	assert_true(world_init(&world));
	world.cpython.layout = number;
	layout = cpython_layout_at(number);
	memory_end = world_make(&world, 64 * FRAME_BYTES);
}

static void end(void)
{
	world_release(&world);
}

static void put_u8(uint64_t address, uint8_t value)
{
	*(uint8_t *)(uintptr_t)address = value;
}

/* Aligned, as the tags of references want it: world_code() makes it where the last object begins.
 */
static uint64_t make_code(uint32_t first_traceable)
{
	uint64_t text = world_ascii(&world, "name");
	uint64_t line_table = world_bytes(&world, "\x80", 1), code;

	world.free &= ~(size_t)7;
	world_make(&world, (8 - (layout->code_instructions + 2 * NR_UNITS) % 8) % 8);
	code = world_code(&world, text, text, line_table, NR_UNITS);

	world_put_u32(code + layout->code_frame_size, FRAME_WORDS);
	world_put_u32(code + layout->code_first_traceable, first_traceable);
	return code;
}

static void fill_frame(uint64_t frame, uint64_t code, uint32_t position, enum owner owner,
		       uint64_t previous)
{
	world_put(frame + layout->frame_code, code | (layout->frame_code_tags & 1));
	world_put(frame + layout->frame_previous, previous);
	world_put(frame + layout->frame_instruction,
		  code + layout->code_instructions + 2 * (uint64_t)position - 2);
	put_u8(frame + layout->frame_owner, (uint8_t)owner);
	if (layout->frame_stack_top)
		world_put_u32(frame + layout->frame_stack_top, (uint32_t)-1);
}

/* A frame of Python code in the thread's memory, behind the last one. */
static uint64_t push(uint64_t code, uint32_t position, uint64_t previous)
{
	uint64_t frame = memory_end;

	memory_end += FRAME_BYTES;
	fill_frame(frame, code, position, THREAD, previous);
	return frame;
}

/* A frame elsewhere. */
static uint64_t make(uint64_t code, uint32_t position, enum owner owner, uint64_t previous)
{
	uint64_t frame = world_make(&world, FRAME_BYTES);

	fill_frame(frame, code, position, owner, previous);
	return frame;
}

static uint64_t loop(uint64_t previous)
{
	return make(0, 0, NONE, previous);
}

/* A thread at @leaf; 3.12: its newest evaluation loop stands on @before. */
static uint64_t make_state(uint64_t leaf, uint64_t before)
{
	uint64_t state = world_make(&world, STATE_BYTES + STATE_DISTANCE);

	world_put(state + layout->state_top, memory_end);
	if (!layout->state_cframe) {
		world_put(state + layout->state_frame, leaf);
		return state;
	}
	world_put(state + layout->state_cframe,
		  world_cframe(&world, leaf, world_cframe(&world, before, 0)));
	return state;
}

static size_t walk(uint64_t state, struct cpython_frame frames[ROOM], enum cpython_end *ret_end)
{
	static struct cpython_remote remote;
	struct cpython_frame from_outside[ROOM];
	struct cpython_remote_stack stack = {.frames = from_outside, .max = ROOM};
	size_t nr_frames = cpython_walk(&world.cpython, state, frames, ROOM, ret_end);

	cpython_remote_begin(&remote, getpid());
	cpython_remote_walk(&remote, &world.cpython, state, &stack);
	assert_int_equal(stack.nr_frames, nr_frames);
	assert_int_equal(stack.end, *ret_end);
	assert_memory_equal(from_outside, frames, nr_frames * sizeof(*frames));
	return nr_frames;
}

static void assert_walk(uint64_t state, size_t nr_frames, enum cpython_end expected)
{
	struct cpython_frame frames[ROOM];
	enum cpython_end ended;

	assert_int_equal(walk(state, frames, &ended), nr_frames);
	assert_int_equal(ended, expected);
}

static void test_walk__gives_the_frames_leaf_first_without_the_interpreters_own(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		uint64_t code, inner, outer_loop;
		struct cpython_frame frames[ROOM];
		enum cpython_end ended;

		begin(layouts[i]);
		code = make_code(0);
		inner = push(code, 5, push(make_code(HIDDEN), 1, push(code, 4, loop(0))));
		outer_loop = loop(inner); /* one that ends, and destroys what runs another one */
		inner = push(code, 6, loop(outer_loop));
		assert_walk(make_state(push(code, 5, make(code, 7, GENERATOR, inner)), outer_loop),
			    5, CPYTHON_END_ROOT);
		inner = make(code, 7, GENERATOR, inner);
		assert_int_equal(walk(make_state(inner, outer_loop), frames, &ended), 4);
		assert_int_equal(ended, CPYTHON_END_ROOT);
		for (size_t j = 0; j < 4; j++) {
			assert_int_equal(frames[j].code_address, code);
			assert_int_equal(frames[j].position, 7 - j);
			assert_int_equal(frames[j].entry, j == 1 || j == 3);
		}
		end();
	}
}

static void test_walk__ends_at_what_is_no_frame(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		uint64_t code, leaf;

		begin(layouts[i]);
		code = make_code(0);
		assert_walk(make_state(0, 0), 0,
			    layout->state_cframe ? CPYTHON_END_UNREADABLE : CPYTHON_END_ROOT);
		assert_walk(make_state(8, 0), 0, CPYTHON_END_UNREADABLE);
		assert_walk(make_state(world_end(&world), 0), 0, CPYTHON_END_UNREADABLE);
		/* no loop below: a generator that is being linked or unlinked */
		assert_walk(make_state(make(code, 3, GENERATOR, 0), 0), 1, CPYTHON_END_UNREADABLE);
		/* no code, no instruction of it */
		assert_walk(make_state(push(world_ascii(&world, "x"), 3, loop(0)), 0), 0,
			    CPYTHON_END_UNREADABLE);
		assert_walk(make_state(push(code, NR_UNITS + 1, loop(0)), 0), 0,
			    CPYTHON_END_UNREADABLE);
		leaf = push(code, 3, loop(0));
		world_put(leaf + layout->frame_instruction, code - 64);
		assert_walk(make_state(leaf, 0), 0, CPYTHON_END_UNREADABLE);
		leaf = loop(0); /* cycles, of loops' frames and of others */
		world_put(leaf + layout->frame_previous, leaf);
		assert_walk(make_state(leaf, leaf), 0, CPYTHON_END_TRUNCATED);
		leaf = make(code, 3, GENERATOR, 0);
		world_put(leaf + layout->frame_previous, leaf);
		assert_walk(make_state(leaf, 0), ROOM, CPYTHON_END_TRUNCATED);
		end();
	}
}

/* A called frame that is current before its previous is written: what was there before. */
static void test_walk__a_frame_that_does_not_stand_on_its_caller_is_none(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		uint64_t code, deep, chunk, newest;

		begin(layouts[i]);
		code = make_code(0);
		deep = push(code, 4, loop(0));
		push(code, 4, deep);
		assert_walk(make_state(push(code, 2, deep), 0), 0, CPYTHON_END_UNREADABLE);
		/* nor on a generator that is suspended, or was resumed by another caller */
		assert_walk(make_state(push(code, 2, make(code, 4, GENERATOR, 0)), 0), 0,
			    CPYTHON_END_UNREADABLE);
		assert_walk(make_state(push(code, 2, make(code, 4, GENERATOR, deep)), 0), 0,
			    CPYTHON_END_UNREADABLE);
		chunk = world_make(&world, 512); /* the first frame of a new chunk stands on any */
		newest = make_state(chunk + layout->chunk_data, 0);
		fill_frame(chunk + layout->chunk_data, code, 2, THREAD, deep);
		world_put(newest + layout->state_chunk, chunk);
		assert_walk(newest, 2, CPYTHON_END_ROOT);
		end();
	}
}

/* 3.12: a frame that has not begun, behind which a generator is missing. */
static void test_walk__who_resumed_a_generator_called_nobody(void **state)
{
	uint64_t code, caller;

	(void)state;
	begin(CPYTHON_LAYOUT_312);
	code = make_code(0);
	caller = push(code, 4, loop(0));
	world_put_u32(caller + layout->frame_return, 9);
	put_u8(caller + layout->frame_owner, THREAD);
	assert_walk(make_state(push(code, 0, caller), 0), 0, CPYTHON_END_UNREADABLE);
	memory_end = caller + FRAME_BYTES; /* one that has begun is linked */
	assert_walk(make_state(push(code, 1, caller), 0), 2, CPYTHON_END_ROOT);
	memory_end = caller + FRAME_BYTES;
	world_put_u32(caller + layout->frame_return, 0);
	assert_walk(make_state(push(code, 0, caller), 0), 2, CPYTHON_END_ROOT);
	end();
}

/* 3.12: a new cframe that is not yet written holds frames of a loop that ended. */
static void test_walk__frames_of_an_ended_loop_are_not_taken(void **state)
{
	uint64_t code, caller, ended, top;

	(void)state;
	begin(CPYTHON_LAYOUT_312);
	code = make_code(0);
	caller = push(code, 4, loop(0));
	assert_walk(make_state(push(code, 5, loop(0)), caller), 0, CPYTHON_END_UNREADABLE);
	ended = push(code, 5, loop(caller)); /* it returned: its stack top is saved */
	world_put_u32(ended + layout->frame_stack_top, 1);
	top = memory_end;
	memory_end += 8; /* and another frame is the newest in memory */
	assert_walk(make_state(ended, caller), 0, CPYTHON_END_UNREADABLE);
	memory_end = top; /* a callback in C that looks at the running frame */
	assert_walk(make_state(ended, caller), 2, CPYTHON_END_ROOT);
	end();
}

static void test_walk__a_caller_is_taken_while_what_it_called_is_cleared(void **state)
{
	uint64_t code, caller, leaf, called;

	(void)state;
	begin(CPYTHON_LAYOUT_312);
	code = make_code(0);
	caller = push(code, 4, loop(0));
	leaf = push(code, 5, loop(caller)); /* it is current again; its stack top is saved still */
	world_put_u32(leaf + layout->frame_stack_top, 1);
	called = push(code, 9, leaf);
	assert_walk(make_state(leaf, caller), 2, CPYTHON_END_ROOT);
	put_u8(called + layout->frame_owner, GENERATOR);
	assert_walk(make_state(leaf, caller), 0, CPYTHON_END_UNREADABLE);
	fill_frame(called, code, 9, THREAD, caller); /* that was called by another */
	assert_walk(make_state(leaf, caller), 0, CPYTHON_END_UNREADABLE);
	fill_frame(called, code, 9, THREAD, leaf);
	memory_end += 8; /* it is not the newest in memory */
	assert_walk(make_state(leaf, caller), 0, CPYTHON_END_UNREADABLE);
	memory_end -= 8;
	put_u8(caller + layout->frame_owner, GENERATOR); /* the leaf does not stand on it */
	assert_walk(make_state(leaf, caller), 0, CPYTHON_END_UNREADABLE);
	end();
}

static void test_walk__instructions_of_a_threads_own_copy(void **state)
{
	uint64_t code, copy, copies, leaf;
	struct cpython_frame frames[ROOM];
	enum cpython_end ended;

	(void)state;
	begin(CPYTHON_LAYOUT_314t);
	code = make_code(0);
	copy = world_make(&world, 2 * NR_UNITS);
	copies = world_make(&world, 32);
	world_put(copies + layout->copies_number, 3);
	world_put(copies + layout->copies_first, code + layout->code_instructions);
	world_put(copies + layout->copies_first + 16, copy);
	world_put(code + layout->code_copies, copies);
	leaf = push(code, 1, loop(0));
	world_put(leaf + layout->frame_instruction, copy + 8);
	world_put_u32(leaf + layout->frame_code_copy, 2);
	assert_int_equal(walk(make_state(leaf, 0), frames, &ended), 1);
	assert_int_equal(ended, CPYTHON_END_ROOT);
	assert_int_equal(frames[0].position, 5);
	world_put_u32(leaf + layout->frame_code_copy, 0); /* not of this copy */
	assert_walk(make_state(leaf, 0), 0, CPYTHON_END_UNREADABLE);
	world_put_u32(leaf + layout->frame_code_copy, 3); /* no such copy */
	assert_walk(make_state(leaf, 0), 0, CPYTHON_END_UNREADABLE);
	world_put_u32(leaf + layout->frame_code_copy, 1); /* not made for this thread */
	assert_walk(make_state(leaf, 0), 0, CPYTHON_END_UNREADABLE);
	end();
}

static void add_state(uint64_t runtime, uint64_t state, uint32_t tid, uint32_t attached)
{
	uint64_t interpreter = world_make(&world, 16384), first;

	memcpy(&first, (const void *)(uintptr_t)(runtime + layout->runtime_first_interpreter), 8);
	world_put(runtime + layout->runtime_first_interpreter, interpreter);
	world_put(interpreter + layout->interpreter_next, first);
	world_put(interpreter + layout->interpreter_first_state, state);
	world_put(state + layout->state_native_id, tid);
	if (layout->state_attached)
		world_put_u32(state + layout->state_attached, attached);
	else
		world_put_u32(state + layout->state_status, attached ? STATE_STATUS_ACTIVE : 0);
}

static void assert_state(uint32_t tid, uint64_t expected, bool held)
{
	static struct cpython_remote remote;
	bool holds_lock = !held;

	/* the variables are not known: both search */
	assert_int_equal(cpython_thread_state(&world.cpython, tid, &holds_lock), expected);
	assert_int_equal(holds_lock, held);
	cpython_remote_begin(&remote, getpid());
	assert_int_equal(cpython_remote_thread_state(&remote, &world.cpython, tid, 0, &holds_lock),
			 expected);
	assert_int_equal(holds_lock, held);
}

static void test_thread_state__is_searched_where_the_variables_are_unknown(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		uint64_t code, runtime, outer_loop, inner_loop, outer, inner, other;

		begin(layouts[i]);
		code = make_code(0);
		runtime = world_make(&world, 8192);
		world.cpython.runtime = runtime;
		outer_loop = loop(0);
		outer = make_state(push(code, 1, outer_loop), 0);
		inner_loop = loop(0); /* made later: lower */
		inner = make_state(push(code, 1, inner_loop), 0);
		other = make_state(0, 0);
		assert_state(7, 0, false);
		add_state(runtime, other, 8, 1);
		add_state(runtime, inner, 7, 0);
		add_state(runtime, outer, 7, 0);
		assert_state(7, inner, false);
		assert_state(8, other, true);
		assert_state(9, 0, false);
		if (layout->state_attached)
			world_put_u32(outer + layout->state_attached, 1);
		else
			world_put_u32(outer + layout->state_status, STATE_STATUS_ACTIVE);
		assert_state(7, outer, true);
		end();
	}
}

static uint32_t calls_of_a_look(struct cpython_remote *remote, uint64_t thread)
{
	struct cpython_frame frames[ROOM];
	struct cpython_remote_stack stack = {.frames = frames, .max = ROOM};
	uint32_t before = remote->blocks.nr_calls;
	bool holds_lock;

	cpython_remote_begin(remote, getpid());
	assert_int_equal(
		cpython_remote_thread_state(remote, &world.cpython, 7, thread, &holds_lock),
		thread);
	cpython_remote_walk(remote, &world.cpython, thread, &stack);
	assert_int_equal(stack.nr_frames, 1);
	return remote->blocks.nr_calls - before;
}

static void test_remote__a_look_like_the_last_one_is_one_call(void **state)
{
	static struct cpython_remote remote;

	(void)state;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		uint64_t code, runtime, leaf, thread;

		begin(layouts[i]);
		memset(&remote, 0, sizeof(remote));
		world_make(&world, 8192);
		code = make_code(0);
		runtime = world_make(&world, 8192);
		world.cpython.runtime = runtime;
		leaf = push(code, 1, loop(0));
		thread = make_state(leaf, 0);
		add_state(runtime, thread, 7, 1);
		assert_true(calls_of_a_look(&remote, thread) > 1);
		assert_int_equal(calls_of_a_look(&remote, thread), 1);
		end();
	}
}

static void test_runs_jitted__where_there_is_a_jit(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		uint64_t thread;

		begin(layouts[i]);
		thread = make_state(0, 0);
		assert_false(cpython_runs_jitted(&world.cpython, thread));
		if (layout->state_executor) {
			world_put(thread + layout->state_executor, thread);
			assert_true(cpython_runs_jitted(&world.cpython, thread));
		}
		end();
	}
}

static bool waits_for_lock(uint64_t thread, uint64_t futex)
{
	static struct cpython_remote remote;

	cpython_remote_begin(&remote, getpid());
	return cpython_remote_waits_for_lock(&remote, &world.cpython, thread, futex);
}

static void test_waits_for_lock__its_own_or_of_a_stopped_world(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		uint64_t thread, runtime, interpreter, at, entry;

		begin(layouts[i]);
		thread = make_state(0, 0);
		runtime = world_make(&world, 1024);
		interpreter = world_make(&world, 2048);
		entry = world_make(&world, 64); /* of a thread that is parked */
		world.cpython.runtime = runtime;
		world_put(thread + layout->state_interpreter, interpreter);
		at = layout->interpreter_lock;
		if (layout->debug_interpreter_lock)
			world_put(runtime + layout->debug_interpreter_lock, at = 1000);
		assert_true(waits_for_lock(thread, interpreter + at));
		at += layout->interpreter_lock_bytes;
		assert_true(waits_for_lock(thread, interpreter + at - 4));
		assert_false(waits_for_lock(thread, interpreter + at));
		assert_false(waits_for_lock(thread, entry + 16));
		world_put(entry + 8, thread + layout->state_attached);
		assert_int_equal(waits_for_lock(thread, entry + 16), layout->free_threaded);
		world_put(entry + 8, thread);
		assert_false(waits_for_lock(thread, entry + 16));
		assert_false(waits_for_lock(thread, 8));
		end();
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test(name)
	const struct CMUnitTest tests[] = {
		TEST(test_walk__gives_the_frames_leaf_first_without_the_interpreters_own),
		TEST(test_walk__ends_at_what_is_no_frame),
		TEST(test_walk__a_frame_that_does_not_stand_on_its_caller_is_none),
		TEST(test_walk__who_resumed_a_generator_called_nobody),
		TEST(test_walk__frames_of_an_ended_loop_are_not_taken),
		TEST(test_walk__a_caller_is_taken_while_what_it_called_is_cleared),
		TEST(test_walk__instructions_of_a_threads_own_copy),
		TEST(test_waits_for_lock__its_own_or_of_a_stopped_world),
		TEST(test_remote__a_look_like_the_last_one_is_one_call),
		TEST(test_runs_jitted__where_there_is_a_jit),
		TEST(test_thread_state__is_searched_where_the_variables_are_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
