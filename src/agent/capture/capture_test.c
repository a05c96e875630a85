/* SPDX-License-Identifier: MIT */
#include "agent/capture/capture_fixture_test.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <ucontext.h>

#define RACE_TICKS	3000
#define STACK_BYTES_MAX 1024 /* the handler's budget; the fake's share is small */
#define PAINTED_BYTES	65536

static void test_capture__blocked_faults_read_nothing(void **state)
{
	struct tick tick = {.time_ns = 5, .count = 1, .faults_blocked = true};

	(void)state;
	call(1, 1);
	capture_tick(&capture, slot, &tick);
	assert_int_equal(fake.calls, 0);
	assert_int_equal(kind_of(last_node()), NODE_UNREADABLE);
	assert_int_equal(node_at(last_node())->parent, 0);
	assert_int_equal(atomic_load(&slot->degraded[DEGRADED_FAULTS_BLOCKED]), 1);
	assert_int_equal(atomic_load(&slot->degraded[DEGRADED_UNREADABLE]), 0);
}

static void test_capture__no_interpreter(void **state)
{
	(void)state;
	call(1, 1);
	capture.cpython.layout = 0;
	assert_int_equal(tick(), 0);
	assert_int_equal(atomic_load(&slot->degraded[DEGRADED_NO_INTERPRETER]), 0);
	capture.no_interpreter = 1;
	assert_int_equal(tick(), 0);
	assert_int_equal(atomic_load(&slot->degraded[DEGRADED_NO_INTERPRETER]), 1);
	assert_int_equal(fake.calls, 0);
}

static void test_capture__an_interpreter_that_is_loaded_later(void **state)
{
	struct tick blocked = {.time_ns = 50, .count = 1, .faults_blocked = true};
	struct memory_interpreter *told = &capture.memory.header->interpreter;

	(void)state;
	call(1, 1);
	capture.cpython.layout = 0;
	fake.late_found = CPYTHON_LATE_NONE;
	assert_int_equal(tick(), 0);
	assert_int_equal(atomic_load(&told->late), MEMORY_LATE_NONE);
	assert_int_equal(fake.late_looks, 1);
	fake.late_found = CPYTHON_LATE_READABLE;
	capture_tick(&capture, slot, &blocked); /* a load that faults would kill */
	assert_int_equal(fake.late_looks, 1);
	assert_int_equal(capture.cpython.layout, 0);
	assert_int_not_equal(tick(), 0);
	assert_int_not_equal(tick(), 0);
	assert_int_equal(fake.late_looks, 2);
	assert_int_equal(atomic_load(&told->late), MEMORY_LATE_READ);
	assert_int_equal(atomic_load(&told->known), 1);
	assert_string_equal(told->late_path, "libfake.so");
	capture.cpython.layout = 0;
	fake.late_found = CPYTHON_LATE_UNREADABLE;
	assert_int_equal(tick(), 0);
	assert_int_equal(atomic_load(&told->late), MEMORY_LATE_UNREADABLE);
	assert_int_equal(atomic_load(&slot->degraded[DEGRADED_NO_INTERPRETER]), 1);
}

static void test_capture__a_position_that_the_jit_keeps_back(void **state)
{
	(void)state;
	call(1, 1);
	fake.runs_jitted = fake.holds_lock = true;
	assert_int_not_equal(tick(), 0);
	assert_int_equal(atomic_load(&slot->degraded[DEGRADED_JIT_POSITION]), 1);
	fake.holds_lock = false; /* it is in a call */
	assert_int_not_equal(tick(), 0);
	assert_int_equal(atomic_load(&slot->degraded[DEGRADED_JIT_POSITION]), 1);
}

static void test_capture__a_thread_without_python(void **state)
{
	(void)state;
	call(1, 1);
	fake.thread_state = 0;
	assert_int_equal(tick(), 0);
	fake.thread_state = 1;
	fake.nr_frames = 0;
	assert_int_equal(tick(), 0);
	for (unsigned int i = 0; i < NR_DEGRADED_REASONS; i++)
		assert_int_equal(atomic_load(&slot->degraded[i]), 0);
	assert_int_equal(nodes_used(), 1);
}

static void test_capture__not_recording_is_no_loss(void **state)
{
	struct tick tick = {.time_ns = 5, .count = 1, .overrun = 3};

	(void)state;
	call(1, 1);
	atomic_store(&capture.memory.header->recording, 0);
	capture_tick(&capture, slot, &tick);
	atomic_store(&slot->busy, 1);
	capture_tick(&capture, slot, &tick);
	assert_int_equal(atomic_load(&slot->samples[0]), 0);
	assert_int_equal(atomic_load(&slot->overrun), 0);
	for (unsigned int i = 0; i < NR_LOSS_REASONS; i++)
		assert_int_equal(atomic_load(&slot->lost[i]), 0);
	assert_int_equal(slot->packet, 0);
}

static void tick_inside(void)
{
	struct cpython_frame saved = fake.frames[0];

	fake.frames[0].position = 999;
	tick_at(slot->last_ns + 1);
	tick_at(slot->last_ns + 1);
	fake.frames[0] = saved;
}

static void test_capture__a_nested_tick_is_a_loss(void **state)
{
	uint32_t node;

	(void)state;
	call(1, 1);
	fake.during_walk = tick_inside;
	node = tick();
	assert_python(node, 1001, 1, false);
	assert_int_equal(atomic_load(&slot->lost[LOSS_NESTED]), 2);
	assert_int_equal(atomic_load(&slot->samples[0]), 1);
	assert_int_equal(tick(), node); /* not busy any more */
}

static jmp_buf out;

static void leave(void)
{
	longjmp(out, 1);
}

/* Called deeper and deeper: the frame of the handler that was left is above them all. */
static __attribute__((noinline)) void tick_below(unsigned int depth)
{
	volatile char frame[256];

	frame[0] = (char)depth;
	if (depth)
		tick_below(depth - 1);
	else
		tick_at(slot->last_ns + 1);
	frame[0]++;
}

static void test_capture__a_handler_that_was_left_is_one_loss(void **state)
{
	(void)state;
	call(1, 1);
	tick();
	fake.during_walk = leave;
	if (setjmp(out) == 0)
		tick_below(20);
	fake.during_walk = NULL;
	assert_int_equal(atomic_load(&slot->busy), 1);
	assert_python(tick(), 1001, 1, false);
	assert_int_equal(atomic_load(&slot->lost[LOSS_NESTED]), 1);
	assert_int_equal(atomic_load(&slot->samples[0]), 2);
	assert_int_equal(atomic_load(&slot->refused[0]), 1);
}

static void test_capture__a_handler_that_was_left_is_found_out_below_it(void **state)
{
	(void)state;
	call(1, 1);
	fake.during_walk = leave;
	if (setjmp(out) == 0)
		tick();
	fake.during_walk = NULL;
	for (int i = 0; i < 100; i++)
		tick_below(20);
	assert_in_range(atomic_load(&slot->lost[LOSS_NESTED]), 64, 70);
	assert_int_equal(atomic_load(&slot->samples[0]) + atomic_load(&slot->lost[LOSS_NESTED]),
			 101);
}

static void test_capture__too_soon_is_a_loss(void **state)
{
	(void)state;
	call(1, 1);
	capture.memory.header->events[0].min_gap_ns = 100;
	tick_at(50); /* the first of all is not too soon */
	tick_at(149);
	tick_at(149);
	assert_int_equal(atomic_load(&slot->samples[0]), 1);
	assert_int_equal(atomic_load(&slot->lost[LOSS_THROTTLED]), 2);
	tick_at(150); /* refused ones do not put it off */
	tick_at(250);
	assert_int_equal(atomic_load(&slot->samples[0]), 3);
	assert_int_equal(atomic_load(&slot->lost[LOSS_THROTTLED]), 2);
}

/* A clock's gap must not throttle the page faults beside it. */
static void test_capture__each_event_has_a_gap_of_its_own(void **state)
{
	struct tick clock = {.event = 0, .count = 1}, fault = {.event = 1, .count = 1};

	(void)state;
	call(1, 1);
	capture.memory.header->events[0].min_gap_ns = 1000;
	capture.memory.header->events[1].min_gap_ns = 10;
	for (uint64_t ns = 10; ns <= 100; ns += 10) {
		clock.time_ns = fault.time_ns = ns;
		capture_tick(&capture, slot, &clock);
		capture_tick(&capture, slot, &fault);
	}
	assert_int_equal(atomic_load(&slot->samples[0]), 1);
	assert_int_equal(atomic_load(&slot->samples[1]), 10);
	assert_int_equal(atomic_load(&slot->lost[LOSS_THROTTLED]), 9);
}

/* The table takes two of four new frames: a loss, and no wrong name afterwards. */
static void test_capture__a_full_table_is_a_loss(void **state)
{
	uint32_t old;

	(void)state;
	call(1, 1);
	call(2, 2);
	call(3, 3);
	call(4, 4);
	call(5, 5);
	old = tick();
	atomic_store(&capture.memory.header->nodes_used, sizes.nr_nodes - 2);
	for (int i = 0; i < 4; i++)
		fake.frames[i].position += 100;
	tick_at(100);
	tick_at(101);
	assert_int_equal(atomic_load(&slot->lost[LOSS_TABLE_FULL]), 2);
	assert_int_equal(atomic_load(&slot->samples[0]), 1);
	/* The frames above the failed one stand in the slot with the nodes of the old chain. */
	fake.frames[1].position -= 100;
	fake.frames[0].position -= 100;
	tick_at(102);
	assert_int_equal(atomic_load(&slot->lost[LOSS_TABLE_FULL]), 3);
	for (int i = 2; i < 4; i++)
		fake.frames[i].position -= 100;
	assert_int_equal(tick(), old);
}

static void test_capture__full_of_codes_is_a_loss(void **state)
{
	(void)state;
	call(1, 1);
	atomic_store(&capture.memory.header->codes_used, sizes.nr_codes);
	tick_at(1);
	assert_int_equal(atomic_load(&slot->lost[LOSS_TABLE_FULL]), 1);
	assert_int_equal(slot->packet, 0);
	assert_int_equal(atomic_load(&slot->busy), 0);
}

static void test_capture__degradations_are_of_kept_samples(void **state)
{
	(void)state;
	fake.end = CPYTHON_END_UNREADABLE;
	atomic_store(&capture.memory.header->free_packets, 0);
	tick_at(1);
	assert_int_equal(atomic_load(&slot->lost[LOSS_BUFFER_FULL]), 1);
	assert_int_equal(atomic_load(&slot->degraded[DEGRADED_UNREADABLE]), 0);
}

static void test_capture__errno_is_kept(void **state)
{
	(void)state;
	call(1, 1);
	for (int i = 0; i < 1000; i++) { /* closes packets, and loses */
		errno = 4321;
		tick_at(i);
		assert_int_equal(errno, 4321);
	}
	assert_true(atomic_load(&capture.memory.header->doorbell) > 0);
}

static void test_capture__tick_is_accounted(void **state)
{
	struct tick tick = {.time_ns = 1, .count = 7, .overrun = 2, .event = 3};

	(void)state;
	capture_tick(&capture, slot, &tick);
	capture_tick(&capture, slot, &tick);
	assert_int_equal(atomic_load(&slot->samples[3]), 2);
	assert_int_equal(atomic_load(&slot->weight[3]), 14);
	assert_int_equal(atomic_load(&slot->overrun), 4);
	assert_true(atomic_load(&slot->handler_ns) > 0);
	tick.time_ns = UINT64_MAX / 4; /* a clock that is ahead adds nothing absurd */
	capture_tick(&capture, slot, &tick);
	assert_true(atomic_load(&slot->handler_ns) < UINT64_MAX / 2);
}

struct racer {
	pthread_barrier_t *start;
	uint32_t nodes[RACE_TICKS];
};

static void *race(void *argument)
{
	struct racer *racer = argument;
	struct slot *own = slot_claim(&capture.memory);
	struct tick tick = {.count = 1};

	slot_activate(&capture.memory, own, 1, 1, 1);
	fake.thread_state = 1;
	for (uint32_t i = 0; i < FAKE_CODES; i++)
		fake.codes[i] = (struct fake_code){
			.identity = 1 + i, .name = "n", .file = "f", .line_table = "t"};
	for (uint32_t i = 0; i < 20; i++)
		call(i, 0);
	pthread_barrier_wait(racer->start);
	for (uint32_t i = 0; i < RACE_TICKS; i++) {
		fake.frames[i % 20].position = i / 20;
		tick.time_ns = i + 1;
		capture_tick(&capture, own, &tick);
		racer->nodes[i] = own->stack[19].node;
	}
	slot_end(&capture.memory, own, 1);
	return NULL;
}

static void test_capture__threads_get_the_same_nodes(void **state)
{
	struct racer *racers = calloc(RACERS, sizeof(*racers));
	pthread_t threads[RACERS];
	pthread_barrier_t start;

	(void)state;
	assert_non_null(racers);
	pthread_barrier_init(&start, NULL, RACERS);
	for (int i = 0; i < RACERS; i++) {
		racers[i].start = &start;
		assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
	}
	for (int i = 0; i < RACERS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < RACERS; i++)
		assert_memory_equal(racers[i].nodes, racers[0].nodes, sizeof(racers[0].nodes));
	for (uint32_t i = 1; i < nodes_used(); i++)
		assert_true(node_at(i)->parent < i);
	assert_int_not_equal(racers[0].nodes[RACE_TICKS - 1], 0);
	pthread_barrier_destroy(&start);
	free(racers);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static void tick_on_painted_stack(void)
{
	tick_at(slot->last_ns + 1);
}

static size_t stack_bytes_of_a_tick(void)
{
	static uint8_t stack[PAINTED_BYTES];
	ucontext_t here, there;
	size_t untouched = 0;

	memset(stack, 0xa5, sizeof(stack));
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	there.uc_link = &here;
	makecontext(&there, tick_on_painted_stack, 0);
	swapcontext(&here, &there);
	while (untouched < sizeof(stack) && stack[untouched] == 0xa5)
		untouched++;
	return sizeof(stack) - untouched;
}

/* New code, new nodes, a new packet: the longest way, on a stack whose every byte is known. */
static void test_capture__little_of_the_programs_stack_is_used(void **state)
{
	size_t used;

	(void)state;
	if (SANITIZED)
		skip();
	call(1, 1);
	tick(); /* binds symbols */
	for (uint32_t i = 0; i < 40; i++)
		call(i, 7);
	used = stack_bytes_of_a_tick();
	print_message("stack used: %zu bytes\n", used);
	assert_true(used <= STACK_BYTES_MAX);
	assert_int_equal(atomic_load(&slot->samples[0]), 2);
}

/* The innermost frame says that the lock was held, in a node of its own. */
static void test_capture__the_lock_is_a_flag_of_the_leaf(void **state)
{
	uint32_t without, with;

	(void)state;
	call(1, 1);
	call(2, 2);
	without = tick();
	fake.holds_lock = true;
	with = tick();
	assert_int_not_equal(with, without);
	assert_python(without, 1002, 2, false);
	assert_int_equal(atomic_load(&node_at(with)->where),
			 node_where(NODE_PYTHON, NODE_FLAG_LOCK_HELD, 2));
	assert_int_equal(node_at(with)->parent, node_at(without)->parent);
	assert_int_equal(tick(), with);
	fake.holds_lock = false;
	assert_int_equal(tick(), without);
}

static void test_capture__without_the_lock_is_left_out_where_only_it_is_wanted(void **state)
{
	(void)state;
	call(1, 1);
	capture.memory.header->only_locked = 1;
	tick_at(10);
	assert_int_equal(atomic_load(&slot->samples[0]), 0);
	assert_int_equal(atomic_load(&slot->left_out), 1);
	for (unsigned int i = 0; i < NR_LOSS_REASONS; i++)
		assert_int_equal(atomic_load(&slot->lost[i]), 0);
	fake.holds_lock = true;
	tick_at(20);
	assert_int_equal(atomic_load(&slot->samples[0]), 1);
	assert_int_equal(atomic_load(&slot->left_out), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CAPTURE_TEST(blocked_faults_read_nothing),
		CAPTURE_TEST(no_interpreter),
		CAPTURE_TEST(an_interpreter_that_is_loaded_later),
		CAPTURE_TEST(a_position_that_the_jit_keeps_back),
		CAPTURE_TEST(a_thread_without_python),
		CAPTURE_TEST(not_recording_is_no_loss),
		CAPTURE_TEST(a_nested_tick_is_a_loss),
		CAPTURE_TEST(a_handler_that_was_left_is_one_loss),
		CAPTURE_TEST(a_handler_that_was_left_is_found_out_below_it),
		CAPTURE_TEST(too_soon_is_a_loss),
		CAPTURE_TEST(each_event_has_a_gap_of_its_own),
		CAPTURE_TEST(a_full_table_is_a_loss),
		CAPTURE_TEST(full_of_codes_is_a_loss),
		CAPTURE_TEST(degradations_are_of_kept_samples),
		CAPTURE_TEST(errno_is_kept),
		CAPTURE_TEST(tick_is_accounted),
		CAPTURE_TEST(the_lock_is_a_flag_of_the_leaf),
		CAPTURE_TEST(without_the_lock_is_left_out_where_only_it_is_wanted),
		CAPTURE_TEST(threads_get_the_same_nodes),
		CAPTURE_TEST(little_of_the_programs_stack_is_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
