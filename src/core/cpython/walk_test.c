/* SPDX-License-Identifier: MIT */
/* The walk and the choice of the thread state over a made-up interpreter, whole and broken. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/cpython/remote.h"
#include "core/cpython/world_for_tests.h"

#define ROOM 16

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

/* The walk, which from another process (here this one, by its id) finds the same. */
static size_t walk_both(struct world *world, uint64_t thread_state,
			struct cpython_frame frames[ROOM], enum cpython_end *ret_end)
{
	static struct cpython_remote remote;
	struct cpython_frame from_outside[ROOM];
	struct cpython_remote_stack stack = {.frames = from_outside, .max = ROOM};
	size_t nr_frames = cpython_walk(&world->cpython, thread_state, frames, ROOM, ret_end);

	cpython_remote_begin(&remote, getpid());
	cpython_remote_walk(&remote, &world->cpython, thread_state, &stack);
	assert_int_equal(stack.nr_frames, nr_frames);
	assert_int_equal(stack.end, *ret_end);
	assert_memory_equal(from_outside, frames, nr_frames * sizeof(*frames));
	return nr_frames;
}

static uint64_t some_code(struct world *world)
{
	uint64_t text = world_ascii(world, "name");

	return world_code(world, text, text, world_bytes(world, "\x80", 1), 10);
}

/* The walk from a thread state whose newest evaluation loop stands at @frame. */
static size_t walk(struct world *world, uint64_t frame, struct cpython_frame frames[ROOM],
		   enum cpython_end *ret_end)
{
	uint64_t root = world_cframe(world, 0, 0);
	uint64_t state = world_state(world, 1, world_cframe(world, frame, root));

	return walk_both(world, state, frames, ret_end);
}

static void test_walk__gives_the_frames_leaf_first(void **state)
{
	struct world *world = world_enter(state);
	uint64_t code = some_code(world), other = some_code(world);
	uint64_t frame = world_frame(world, other, 10, true, 0);
	struct cpython_frame frames[ROOM];
	enum cpython_end end;

	frame = world_frame(world, code, 3, false, frame);
	frame = world_frame(world, other, 0, false, frame);
	assert_int_equal(walk(world, frame, frames, &end), 3);
	assert_int_equal(end, CPYTHON_END_ROOT);
	assert_true(frames[0].code_address == other && frames[0].position == 0 && !frames[0].entry);
	assert_true(frames[1].code_address == code && frames[1].position == 3 && !frames[1].entry);
	assert_true(frames[2].code_address == other && frames[2].position == 10 &&
		    frames[2].entry == 1);
}

static void test_walk__has_no_frames_without_a_state_or_a_layout(void **state)
{
	struct world *world = world_enter(state);
	struct cpython none = {0};
	struct cpython_frame frames[ROOM];
	bool holds_lock = true;
	enum cpython_end end;

	assert_int_equal(walk_both(world, world_idle_state(world, 1), frames, &end), 0);
	assert_int_equal(end, CPYTHON_END_ROOT);
	assert_int_equal(walk(world, 0, frames, &end), 0); /* being pushed, see below */
	assert_int_equal(end, CPYTHON_END_UNREADABLE);
	assert_int_equal(walk_both(world, 0, frames, &end), 0);
	assert_int_equal(end, CPYTHON_END_ROOT);
	assert_int_equal(cpython_walk(&none, 8, frames, ROOM, &end), 0);
	assert_int_equal(cpython_thread_state(&none, 1, &holds_lock), 0);
	assert_false(holds_lock);
}

static void test_walk__fills_its_room_exactly(void **state)
{
	struct world *world = world_enter(state);
	uint64_t code = some_code(world), frame = 0;
	struct cpython_frame frames[ROOM];
	enum cpython_end end;

	for (unsigned int i = 0; i < ROOM; i++)
		frame = world_frame(world, code, 1, i == 0, frame);
	assert_int_equal(walk(world, frame, frames, &end), ROOM);
	assert_int_equal(end, CPYTHON_END_ROOT);
	frame = world_frame(world, code, 1, false, frame);
	assert_int_equal(walk(world, frame, frames, &end), ROOM);
	assert_int_equal(end, CPYTHON_END_TRUNCATED);
}

static void test_walk__a_cycle_ends_at_the_room(void **state)
{
	struct world *world = world_enter(state);
	uint64_t code = some_code(world), frame = world_frame(world, code, 1, false, 0);
	struct cpython_frame frames[ROOM];
	enum cpython_end end;

	world_put(frame + world_layout(world)->frame_previous, frame);
	frame = world_frame(world, code, 1, false, frame);
	assert_int_equal(walk(world, frame, frames, &end), ROOM);
	assert_int_equal(end, CPYTHON_END_TRUNCATED);
}

/* What stands before the broken frame is kept. */
static void assert_cut_before(struct world *world, uint64_t broken)
{
	uint64_t code = some_code(world), caller = world_frame(world, code, 1, false, broken);
	struct cpython_frame frames[ROOM];
	enum cpython_end end;

	assert_int_equal(walk(world, world_frame(world, code, 1, false, caller), frames, &end), 2);
	assert_int_equal(end, CPYTHON_END_UNREADABLE);
}

static void test_walk__ends_at_what_is_no_frame(void **state)
{
	struct world *world = world_enter(state);
	const struct cpython_layout *layout = world_layout(world);
	uint64_t code = some_code(world), root = world_frame(world, code, 1, true, 0);
	uint64_t frame;

	assert_cut_before(world, 8);
	assert_cut_before(world, world_end(world));
	assert_cut_before(world, world_end(world) - layout->frame_previous);
	assert_cut_before(world, 0xffff800000000000);
	assert_cut_before(world, (uint64_t)1 << 62); /* not canonical */

	/* no code object; a position outside, before, between the code units */
	assert_cut_before(world, world_frame(world, 0, 1, false, root));
	assert_cut_before(world, world_frame(world, world_end(world), 1, false, root));
	assert_cut_before(world, world_frame(world, world_ascii(world, "x"), 1, false, root));
	assert_cut_before(world, world_frame(world, code, 11, false, root));
	frame = world_frame(world, code, 1, false, root);
	world_put(frame + layout->frame_instruction, code);
	assert_cut_before(world, frame);
	world_put(frame + layout->frame_instruction, code + layout->code_instructions + 1);
	assert_cut_before(world, frame);
}

static void test_walk__a_state_that_cannot_be_read(void **state)
{
	struct world *world = world_enter(state);
	struct cpython_frame frames[ROOM];
	enum cpython_end end;

	assert_int_equal(walk_both(world, 8, frames, &end), 0);
	assert_int_equal(end, CPYTHON_END_UNREADABLE);
	assert_int_equal(walk_both(world, world_state(world, 1, 8), frames, &end), 0);
	assert_int_equal(end, CPYTHON_END_UNREADABLE);
}

/* A tick between the linking of a cframe and the writing of its frame: where the thread was. */
static void test_walk__a_frame_that_is_being_pushed_is_passed_over(void **state)
{
	struct world *world = world_enter(state);
	uint64_t code = some_code(world);
	uint64_t caller = world_frame(world, code, 4, true, 0);
	uint64_t cframe = world_cframe(world, caller, world_cframe(world, 0, 0));
	const uint64_t rubbish[] = {8, code, world_end(world), 0xffff800000000000};
	struct cpython_frame frames[ROOM];
	enum cpython_end end;

	for (size_t i = 0; i < sizeof(rubbish) / sizeof(rubbish[0]); i++) {
		uint64_t newest = world_cframe(world, rubbish[i], cframe);
		uint64_t thread = world_state(world, 1, newest);

		assert_int_equal(walk_both(world, thread, frames, &end), 1);
		assert_int_equal(end, CPYTHON_END_ROOT);
		assert_int_equal(frames[0].position, 4);
	}
}

/* The same, when what the new cframe holds are frames of an evaluation loop that has ended. */
static void test_walk__frames_of_an_ended_loop_are_not_taken(void **state)
{
	struct world *world = world_enter(state);
	uint64_t code = some_code(world);
	uint64_t caller = world_frame(world, code, 4, true, 0);
	uint64_t ended = world_frame(world, code, 5, true, 0);
	uint64_t newest = world_cframe(world, ended, world_cframe(world, caller, 0));
	struct cpython_frame frames[ROOM];
	enum cpython_end end;

	assert_int_equal(walk_both(world, world_state(world, 1, newest), frames, &end), 0);
	assert_int_equal(end, CPYTHON_END_UNREADABLE);
	newest = world_cframe(world, ended, 0); /* not even the cframe before is written */
	assert_int_equal(walk_both(world, world_state(world, 1, newest), frames, &end), 0);
	assert_int_equal(end, CPYTHON_END_UNREADABLE);
}

/* A frame of @owner that ended, behind which stands its caller, or NULL where it is suspended. */
static uint64_t ended(struct world *world, uint64_t code, unsigned int owner, uint64_t caller)
{
	uint64_t frame = world_frame(world, code, 2, !caller, caller);

	*(uint8_t *)(uintptr_t)(frame + world_layout(world)->frame_owner) = (uint8_t)owner;
	return frame;
}

/* A called frame that is current before its previous is written: that of the frame before it. */
static void test_walk__a_frame_that_does_not_stand_on_its_caller_is_none(void **state)
{
	struct world *world = world_enter(state);
	const struct cpython_layout *layout = world_layout(world);
	uint64_t code = some_code(world), caller = world_frame(world, code, 4, true, 0);
	const uint64_t others[] = {ended(world, code, 0, 0), ended(world, code, 0, caller),
				   ended(world, code, 1, 0), ended(world, code, 1, caller)};
	struct cpython_frame frames[ROOM];
	uint64_t leaf, generator, chunk, thread;
	enum cpython_end end;

	world_frame(world, code, 4, false, caller);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		leaf = world_frame(world, code, 2, false, others[i]);
		assert_int_equal(walk(world, leaf, frames, &end), 0);
		assert_int_equal(end, CPYTHON_END_UNREADABLE);
	}
	/* as much room for locals and values as brings its end to the leaf's beginning */
	world_put_u32(code + layout->code_locals, 5);
	caller = world_frame(world, code, 4, true, 0);
	world->next_frame += 8 * 5;
	generator = world_make(world, 512) & ~(uint64_t)7;
	leaf = world_frame(world, code, 2, false, generator);
	memcpy((void *)(uintptr_t)generator, (void *)(uintptr_t)leaf, layout->frame_locals);
	world_put(generator + layout->frame_previous, caller);
	*(uint8_t *)(uintptr_t)(generator + layout->frame_owner) = 1;
	assert_int_equal(walk(world, leaf, frames, &end), 3);
	assert_int_equal(end, CPYTHON_END_ROOT);
	/* the first frame of a new chunk stands on any */
	chunk = world_make(world, 512) & ~(uint64_t)7;
	memcpy((void *)(uintptr_t)(chunk + layout->chunk_data), (void *)(uintptr_t)leaf,
	       layout->frame_locals);
	thread = world_state(
		world, 1,
		world_cframe(world, chunk + layout->chunk_data, world_cframe(world, 0, 0)));
	assert_int_equal(walk_both(world, thread, frames, &end), 0);
	world_put(thread + layout->state_chunk, chunk);
	assert_int_equal(walk_both(world, thread, frames, &end), 3);
	assert_int_equal(end, CPYTHON_END_ROOT);
}

/* A tick between a frame's becoming current and the writing of its previous. */
static void test_walk__a_root_that_nobody_entered_is_none(void **state)
{
	struct world *world = world_enter(state);
	uint64_t leaf = world_frame(world, some_code(world), 0, false, 0);
	struct cpython_frame frames[ROOM];
	enum cpython_end end;

	assert_int_equal(walk(world, leaf, frames, &end), 1);
	assert_int_equal(end, CPYTHON_END_UNREADABLE);
}

/* The state, and that the lock is held exactly where @held says so. */
static uint64_t state_of(struct world *world, uint32_t tid, bool held)
{
	bool holds_lock = !held;
	uint64_t found = cpython_thread_state(&world->cpython, tid, &holds_lock);

	assert_int_equal(holds_lock, held);
	return found;
}

/* A runtime with the interpreters [newest, main], each with one state. */
static void make_runtime(struct world *world, uint64_t newest_state, uint64_t main_state)
{
	const struct cpython_layout *layout = world_layout(world);
	uint64_t newest = world_make(world, 64), main_interpreter = world_make(world, 64);
	uint64_t runtime = world_make(world, layout->runtime_key + 8);

	world_put(newest + layout->interpreter_first_state, newest_state);
	world_put(main_interpreter + layout->interpreter_first_state, main_state);
	world_put(newest + layout->interpreter_next, main_interpreter);
	world_put(runtime + layout->runtime_first_interpreter, newest);
	world->cpython.runtime = runtime;
}

static void test_thread_state__is_the_current_one_if_it_is_ours(void **state)
{
	struct world *world = world_enter(state);
	const struct cpython_layout *layout = world_layout(world);
	uint64_t ours = world_state(world, 7, 0), theirs = world_state(world, 8, 0);

	make_runtime(world, 0, 0);
	world_put(world->cpython.runtime + layout->runtime_current_state, ours);
	assert_int_equal(state_of(world, 7, true), ours);
	world_put(world->cpython.runtime + layout->runtime_current_state, theirs);
	assert_int_equal(state_of(world, 7, false), 0);
	world_put(world->cpython.runtime + layout->runtime_current_state, 8);
	assert_int_equal(state_of(world, 7, false), 0);
}

static void test_thread_state__is_the_keys_when_the_lock_is_released(void **state)
{
	struct world *world = world_enter(state);
	const struct cpython_layout *layout = world_layout(world);
	uint64_t ours = world_state(world, 7, 0);
	pthread_key_t key;

	assert_int_equal(pthread_key_create(&key, NULL), 0);
	assert_int_equal(pthread_setspecific(key, (void *)(uintptr_t)ours), 0);
	make_runtime(world, 0, ours);
	world_put_u32(world->cpython.runtime + layout->runtime_key, key);
	assert_int_equal(state_of(world, 7, false), 0); /* not initialized */
	world_put_u32(world->cpython.runtime + layout->runtime_key_initialized, 1);
	assert_int_equal(state_of(world, 7, false), ours);
	pthread_key_delete(key);
}

static void test_thread_state__of_several_the_one_deepest_in_the_stack_runs(void **state)
{
	struct world *world = world_enter(state);
	const struct cpython_layout *layout = world_layout(world);
	uint64_t deep = world_cframe(world, 0, 0) - 1024, high = world_end(world) - 64;
	uint64_t outer = world_state(world, 7, high), inner = world_state(world, 7, deep);
	uint64_t idle = world_idle_state(world, 7), theirs = world_state(world, 8, deep - 64);

	make_runtime(world, inner, outer);
	assert_int_equal(state_of(world, 7, false), inner);
	make_runtime(world, outer, inner);
	assert_int_equal(state_of(world, 7, false), inner);
	make_runtime(world, idle, outer);
	assert_int_equal(state_of(world, 7, false), outer);
	make_runtime(world, theirs, outer);
	assert_int_equal(state_of(world, 7, false), outer);
	make_runtime(world, idle, theirs);
	assert_int_equal(state_of(world, 7, false), 0);
	world_put(outer + layout->state_next, outer); /* a cycle ends at the bound */
	make_runtime(world, outer, inner);
	assert_int_equal(state_of(world, 7, false), outer);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_walk__gives_the_frames_leaf_first),
		TEST(test_walk__has_no_frames_without_a_state_or_a_layout),
		TEST(test_walk__fills_its_room_exactly),
		TEST(test_walk__a_cycle_ends_at_the_room),
		TEST(test_walk__ends_at_what_is_no_frame),
		TEST(test_walk__a_state_that_cannot_be_read),
		TEST(test_walk__a_frame_that_is_being_pushed_is_passed_over),
		TEST(test_walk__frames_of_an_ended_loop_are_not_taken),
		TEST(test_walk__a_frame_that_does_not_stand_on_its_caller_is_none),
		TEST(test_walk__a_root_that_nobody_entered_is_none),
		TEST(test_thread_state__is_the_current_one_if_it_is_ours),
		TEST(test_thread_state__is_the_keys_when_the_lock_is_released),
		TEST(test_thread_state__of_several_the_one_deepest_in_the_stack_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
