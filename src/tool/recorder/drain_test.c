/* SPDX-License-Identifier: MIT */
/*
 * Draining a memory that is ticked by hand: what stands in the files, byte by byte, also with a
 * full disk (RLIMIT_FSIZE cuts writes as a full disk does: short, then an error).
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/event/ctf.h"
#include "tool/recorder/recorder_types.h"

#define SAMPLE_BYTES 16

static char base[64];
static struct event_choice event = {
	.name = "cpu-time", .unit = "ns", .trigger = TRIGGER_MANUAL, .period = 1000};
static char *no_command[] = {NULL};
static const struct record_request request = {
	.command = no_command, .directory = "x", .events = &event, .nr_events = 1};
static struct recorder recorder;

static int set_up(void **state)
{
	struct memory_sizes sizes = memory_sizes_for(MEMORY_BYTES_MIN);

	(void)state;
	memset(&recorder, 0, sizeof(recorder));
	snprintf(base, sizeof(base), "/tmp/pathprof-test-XXXXXX");
	if (!mkdtemp(base))
		return -1;
	recorder.request = &request;
	recorder.root_pid = 0x7fffffff; /* nobody's: nothing is read from /proc */
	memset(recorder.uuid, 0xab, 16);
	if (directory_create(base, &recorder.directory, NULL) ||
	    memory_create(&sizes, &recorder.memory, &recorder.memory_fd, NULL) ||
	    definitions_init(&recorder.definitions, recorder.directory.ust_fd, recorder.uuid))
		return -1;
	recorder.shadows = calloc(sizes.nr_slots, sizeof(*recorder.shadows));
	recorder.indices = calloc(sizes.nr_packets, sizeof(*recorder.indices));
	recorder.written = calloc(sizes.nr_packets, sizeof(*recorder.written));
	recorder.ended = calloc(sizes.nr_slots, sizeof(*recorder.ended));
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	for (unsigned int i = 0; i < recorder.nr_notes; i++)
		free(recorder.notes[i]);
	definitions_release(&recorder.definitions);
	directory_close(&recorder.directory);
	memory_unmap(&recorder.memory);
	close(recorder.memory_fd);
	free(recorder.shadows);
	free(recorder.indices);
	free(recorder.written);
	free(recorder.ended);
	snprintf(command, sizeof(command), "rm -rf '%s'", base);
	return system(command);
}

static struct slot *start_thread(uint32_t tid)
{
	struct slot *slot = slot_claim(&recorder.memory);

	assert_non_null(slot);
	slot_activate(&recorder.memory, slot, 0x7fffffff, tid, 1000);
	snprintf(slot->name, sizeof(slot->name), "worker");
	return slot;
}

static void tick(struct slot *slot, unsigned int number)
{
	static uint64_t time_ns = 5000;

	for (unsigned int i = 0; i < number; i++) {
		time_ns += 10;
		slot_write_sample(&recorder.memory, slot, 0, time_ns, 0, 7, 1000);
	}
}

/* Samples that fill one packet exactly. */
static unsigned int packet_samples(void)
{
	unsigned int room = recorder.memory.header->sizes.packet_bytes -
			    (unsigned int)sizeof(struct packet_control) - CTF_PREFIX_BYTES;

	return (room - CTF_SAMPLE_MAX_BYTES) / SAMPLE_BYTES + 1;
}

static size_t read_file(const char *name, uint8_t **ret_bytes)
{
	struct stat status;
	int fd = openat(recorder.directory.ust_fd, name, O_RDONLY);

	*ret_bytes = NULL;
	if (fd < 0)
		return 0;
	assert_int_equal(fstat(fd, &status), 0);
	*ret_bytes = malloc((size_t)status.st_size + 1);
	assert_int_equal(read(fd, *ret_bytes, (size_t)status.st_size), status.st_size);
	close(fd);
	return (size_t)status.st_size;
}

/* Walk a stream's packets; returns their number, checks that each is whole. */
static unsigned int count_packets(const char *name, uint64_t *ret_samples)
{
	uint8_t *bytes;
	size_t length = read_file(name, &bytes), at = 0;
	unsigned int packets = 0;

	*ret_samples = 0;
	while (at < length) {
		struct ctf_packet_prefix prefix;

		assert_true(length - at >= sizeof(prefix));
		memcpy(&prefix, bytes + at, sizeof(prefix));
		assert_int_equal(prefix.magic, CTF_MAGIC);
		assert_int_equal(prefix.uuid[5], 0xab);
		assert_int_equal(prefix.content_bits, prefix.packet_bits);
		assert_true(prefix.packet_bits / 8 <= length - at);
		*ret_samples += (prefix.packet_bits / 8 - CTF_PREFIX_BYTES) / SAMPLE_BYTES;
		at += prefix.packet_bits / 8;
		packets++;
	}
	free(bytes);
	return packets;
}

static void test_drain__full_packets_and_ends_reach_the_files(void **state)
{
	struct slot *slot = start_thread(41);
	uint64_t samples;

	(void)state;
	tick(slot, packet_samples() + 5);
	drain_round(&recorder);
	assert_int_equal(count_packets("slot_0000", &samples), 1);
	assert_int_equal(samples, packet_samples());
	slot_end(&recorder.memory, slot, 9000);
	drain_round(&recorder);
	assert_int_equal(count_packets("slot_0000", &samples), 2);
	assert_int_equal(samples, packet_samples() + 5);
	assert_int_equal(recorder.totals.samples, packet_samples() + 5);
	assert_int_equal(recorder.totals.nr_threads, 1);
	assert_int_equal(recorder.totals.event_count[0], 1000 * (packet_samples() + 5));
	assert_int_equal(atomic_load(&slot->state), SLOT_FREE);
}

static void test_drain__threads_cut_off_lose_nothing(void **state)
{
	struct slot *slot = start_thread(41);
	struct slot *other = start_thread(42);
	uint64_t samples;

	(void)state;
	tick(slot, 3);
	tick(other, 4);
	slot_claim(&recorder.memory); /* a thread that was being made */
	drain_end_image(&recorder, 9000);
	assert_int_equal(count_packets("slot_0000", &samples), 1);
	assert_int_equal(samples, 3);
	assert_int_equal(count_packets("slot_0001", &samples), 1);
	assert_int_equal(samples, 4);
	assert_int_equal(recorder.totals.nr_threads, 2);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(atomic_load(&recorder.memory.slots[i].state), SLOT_FREE);
}

static void test_drain__a_slot_reused_goes_on_in_its_stream(void **state)
{
	uint64_t samples;

	(void)state;
	for (uint32_t tid = 41; tid < 141; tid++) {
		struct slot *slot = start_thread(tid);

		tick(slot, 1);
		slot_end(&recorder.memory, slot, 9000);
		drain_round(&recorder);
	}
	assert_int_equal(count_packets("slot_0000", &samples), 100);
	assert_int_equal(samples, 100);
	assert_int_equal(recorder.totals.nr_threads, 100);
}

static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_drain__a_full_disk_cuts_at_a_packet_and_counts(void **state)
{
	struct slot *slot = start_thread(41);
	unsigned int each = packet_samples();
	uint64_t samples;

	(void)state;
	tick(slot, each);
	drain_round(&recorder);
	/* Room for half a packet more; the definitions fit. */
	limit_files(CTF_PREFIX_BYTES + SAMPLE_BYTES * each + 5000);
	tick(slot, each);
	drain_round(&recorder);
	limit_files(RLIM_INFINITY);
	assert_int_equal(count_packets("slot_0000", &samples), 1);
	assert_int_equal(samples, each);
	assert_int_equal(recorder.totals.lost[LOSS_DISK], each);
	assert_true(recorder.disk_full);
	/* There is room again: what follows is written. */
	tick(slot, each);
	drain_round(&recorder);
	assert_int_equal(count_packets("slot_0000", &samples), 2);
	assert_int_equal(recorder.totals.lost[LOSS_DISK], each);
	assert_int_equal(recorder.totals.samples, 2 * each);
}

static void test_drain__a_disk_full_from_the_start_leaves_no_empty_stream(void **state)
{
	struct slot *slot = start_thread(41);
	uint64_t samples;

	(void)state;
	limit_files(10);
	tick(slot, packet_samples());
	drain_round(&recorder);
	limit_files(RLIM_INFINITY);
	assert_int_equal(faccessat(recorder.directory.ust_fd, "slot_0000", F_OK, 0), -1);
	assert_int_equal(count_packets("slot_0000", &samples), 0);
	assert_int_equal(recorder.totals.lost[LOSS_DISK], packet_samples());
}

/* Definitions that did not fit are written when there is room, before any sample after them. */
static void test_drain__definitions_are_kept_over_a_full_disk(void **state)
{
	struct memory *memory = &recorder.memory;
	struct slot *slot = start_thread(41);
	uint8_t *bytes;
	uint32_t node;

	(void)state;
	node = table_node(memory, 0, 0, node_where(NODE_TRUNCATED, 0, 5));
	assert_int_not_equal(node, 0);
	limit_files(10);
	tick(slot, packet_samples());
	drain_round(&recorder);
	assert_int_equal(recorder.definitions.file_bytes, 0);
	limit_files(RLIM_INFINITY);
	tick(slot, packet_samples());
	drain_round(&recorder);
	assert_int_equal(read_file("definitions", &bytes), CTF_PREFIX_BYTES + 4 + 22);
	free(bytes);
	assert_int_equal(recorder.totals.samples, packet_samples());
}

/* One event as it was made, or as it stands in a file. */
struct made {
	uint64_t time_ns, count;
};

static void write_made(struct slot *slot, const struct made *made, unsigned int number)
{
	for (unsigned int i = 0; i < number; i++)
		assert_true(slot_write_sample(&recorder.memory, slot, 0, made[i].time_ns, 0, 7,
					      made[i].count));
}

/*
 * The events of a stream, read as the format says, each packet by itself; returns their number.
 * Packets must be numbered from 0 and their times and losses not go back.
 */
static unsigned int read_events(const char *name, struct made *ret_made, unsigned int room)
{
	uint8_t *bytes;
	size_t length = read_file(name, &bytes), at = 0;
	uint64_t packets = 0, end_ns = 0, discarded = 0;
	unsigned int number = 0;

	while (at < length) {
		size_t end;
		struct ctf_packet_prefix prefix;
		uint64_t time_ns;

		memcpy(&prefix, bytes + at, sizeof(prefix));
		assert_int_equal(prefix.packet_seq_num, packets++);
		assert_true(prefix.timestamp_begin >= end_ns);
		assert_true(prefix.events_discarded >= discarded);
		end_ns = prefix.timestamp_end;
		discarded = prefix.events_discarded;
		time_ns = prefix.timestamp_begin;
		end = at + prefix.packet_bits / 8;
		at += sizeof(prefix);
		assert_true(at < end);
		while (at < end) {
			uint32_t id, native;

			memcpy(&id, bytes + at, 4);
			if ((id & 31) == 31) {
				memcpy(&id, bytes + at + 1, 4);
				memcpy(&time_ns, bytes + at + 5, 8);
				at += 13;
			} else {
				uint64_t low = id >> 5, mask = (1u << 27) - 1;

				low |= time_ns & ~mask;
				time_ns = low < time_ns ? low + mask + 1 : low;
				id &= 31;
				at += 4;
			}
			assert_true(id < 2 && number < room);
			memcpy(&native, bytes + at + 4, 4);
			assert_int_equal(native, 7);
			ret_made[number] = (struct made){.time_ns = time_ns};
			memcpy(&ret_made[number++].count, bytes + at + 8, id ? 8 : 4);
			at += id ? 16 : 12;
		}
		assert_int_equal(at, end);
		assert_int_equal(end_ns, time_ns);
	}
	free(bytes);
	return number;
}

/* Neighbours near and far, also where the short header's 27 bits turn over; wide counts. */
static const struct made varied[] = {
	{(5ull << 27) - 20, 1},
	{(5ull << 27) - 20, 1ull << 40},
	{(5ull << 27) - 1, 2},
	{(5ull << 27), 3},
	{(6ull << 27) - 1, 4},
	{(7ull << 27) - 1, 5ull << 33},
	{(9ull << 27) + 1, 6},
	{(9ull << 27) + 1, 1ull << 35},
	{1ull << 50, 7},
	{(1ull << 50) + 10, UINT32_MAX},
	{(1ull << 50) + 10, UINT32_MAX + 1ull},
};
#define NR_VARIED (sizeof(varied) / sizeof(varied[0]))

static void check_varied(unsigned int number)
{
	struct made read[NR_VARIED + 1];

	assert_int_equal(read_events("slot_0000", read, NR_VARIED + 1), number);
	assert_memory_equal(read, varied, number * sizeof(varied[0]));
}

static void test_flush__parts_at_every_boundary_are_one_stream(void **state)
{
	for (unsigned int first = 0; first <= NR_VARIED; first++) {
		for (unsigned int second = first; second <= NR_VARIED; second++) {
			struct slot *slot = start_thread(41);

			write_made(slot, varied, first);
			drain_flush(&recorder);
			check_varied(first);
			write_made(slot, varied + first, second - first);
			drain_flush(&recorder);
			drain_flush(&recorder); /* nothing came: nothing is written */
			check_varied(second);
			write_made(slot, varied + second, (unsigned int)NR_VARIED - second);
			slot_end(&recorder.memory, slot, 1ull << 51);
			drain_round(&recorder);
			check_varied(NR_VARIED);
			assert_int_equal(recorder.totals.samples, NR_VARIED);
			assert_int_equal(tear_down(state), 0);
			assert_int_equal(set_up(state), 0);
		}
	}
}

/* As each event of the program's may be cut short by what is flushed. */
static void test_parts__are_of_whole_events_alone(void **state)
{
	uint8_t bytes[4 * CTF_SAMPLE_MAX_BYTES] = {0};
	uint32_t at = 16, whole[4], number = 0;
	uint64_t previous = 1000;
	const struct made *made = &varied[3];

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		at += (uint32_t)ctf_put_sample(bytes + at, 0, made[i].time_ns, previous, 0, 7,
					       made[i].count);
		previous = made[i].time_ns;
		whole[i] = at;
	}
	for (uint32_t to = 16; to <= at; to++) {
		struct part part = {.end = 16, .last_ns = 1000};

		number += number < 4 && to == whole[number];
		part_measure(bytes, to, 1, &part);
		assert_int_equal(part.samples, number);
		assert_int_equal(part.end, number ? whole[number - 1] : 16);
		assert_int_equal(part.last_ns, number ? made[number - 1].time_ns : 1000);
	}
	/* An id that is no event's ends it, in the short form and in the long one. */
	for (unsigned int i = 0; i < 4; i++) {
		struct part part = {.end = 16, .last_ns = 1000};
		uint8_t *id = bytes + (i ? whole[i - 1] : 16);
		bool extended = (*id & 31) == 31;
		uint8_t before = id[extended];

		id[extended] = extended ? 2 : (uint8_t)((before & ~31) | 2);
		part_measure(bytes, at, 1, &part);
		id[extended] = before;
		assert_int_equal(part.samples, i);
	}
}

static void test_flush__a_packet_that_others_use_again_begins_anew(void **state)
{
	struct made read[8];
	struct slot *slot, *other;

	(void)state;
	slot = start_thread(41);
	other = start_thread(42);
	write_made(slot, varied, 3);
	drain_flush(&recorder);
	slot_end(&recorder.memory, slot, 1ull << 51); /* nothing came after the flush */
	drain_round(&recorder);
	write_made(other, varied, 2); /* into the packet that was freed last */
	drain_flush(&recorder);
	write_made(other, varied + 2, 2);
	slot = start_thread(43); /* in the first one's slot, and stream */
	write_made(slot, varied + 3, 1);
	drain_flush(&recorder);
	drain_end_image(&recorder, 1ull << 51);
	assert_int_equal(read_events("slot_0001", read, 8), 4);
	assert_memory_equal(read, varied, 4 * sizeof(varied[0]));
	assert_int_equal(read_events("slot_0000", read, 8), 4);
	assert_memory_equal(read, varied, 4 * sizeof(varied[0]));
	assert_int_equal(recorder.totals.samples, 8);
}

/* Full packets, flushes in between, and a thread that does so again and again. */
static void test_flush__full_packets_follow_their_parts(void **state)
{
	struct slot *slot = start_thread(41);
	unsigned int each = packet_samples(), made = 0;
	struct made *read = calloc(4 * each, sizeof(*read));

	(void)state;
	assert_non_null(read);
	for (unsigned int steps = each / 7; made + steps < 3 * each; made += steps) {
		tick(slot, steps);
		drain_flush(&recorder);
		assert_int_equal(read_events("slot_0000", read, 4 * each), made + steps);
	}
	drain_end_image(&recorder, 1ull << 51);
	assert_int_equal(read_events("slot_0000", read, 4 * each), made);
	assert_int_equal(recorder.totals.samples, made);
	free(read);
}

/* A flush between a full packet and its drain must not overtake it. */
static void test_flush__never_overtakes_a_full_packet(void **state)
{
	struct slot *slot = start_thread(41);
	struct packet_control *packet;
	uint32_t seq;
	uint64_t samples;

	(void)state;
	tick(slot, 5);
	packet = slot_open_packet(&recorder.memory, slot);
	seq = packet->seq;
	packet->seq = seq + 1; /* as if the one before it came too late for the round */
	drain_flush(&recorder);
	assert_int_equal(count_packets("slot_0000", &samples), 0);
	packet->seq = seq;
	drain_flush(&recorder);
	assert_int_equal(count_packets("slot_0000", &samples), 1);
	assert_int_equal(samples, 5);
}

static void test_flush__a_full_disk_loses_nothing_that_memory_holds(void **state)
{
	struct made read[32];
	struct slot *slot = start_thread(41);

	(void)state;
	tick(slot, 5);
	limit_files(10);
	drain_flush(&recorder);
	limit_files(RLIM_INFINITY);
	assert_int_equal(recorder.totals.lost[LOSS_DISK], 0);
	assert_int_equal(recorder.totals.samples, 0);
	tick(slot, 5);
	drain_flush(&recorder);
	tick(slot, 5);
	limit_files(10);
	drain_end_image(&recorder, 9000);
	limit_files(RLIM_INFINITY);
	assert_int_equal(read_events("slot_0000", read, 32), 10);
	assert_int_equal(recorder.totals.lost[LOSS_DISK], 5);
	assert_int_equal(recorder.totals.samples, 10);
}

/* Losses are as of the packet's opening in all of its parts, so never go back. */
static void test_flush__discarded_counts_do_not_go_back(void **state)
{
	struct made read[16];
	struct slot *slot = start_thread(41);

	(void)state;
	for (unsigned int i = 0; i < 6; i++) {
		slot_lose(slot, LOSS_THROTTLED, 3);
		tick(slot, 2);
		drain_flush(&recorder);
		if (i == 2) {
			slot_end(&recorder.memory, slot, 9000);
			drain_round(&recorder);
			slot = start_thread(42);
		}
	}
	assert_int_equal(read_events("slot_0000", read, 16), 12);
}

#define BUSY_THREADS 3
#define BUSY_LIVES   40
#define BUSY_SAMPLES 1500 /* a packet and a half */

static _Atomic unsigned int busy_left;

/* Threads one after the other, each with so many samples; a real one would count a loss. */
static void *be_busy(void *argument)
{
	for (uint32_t life = 0; life < BUSY_LIVES; life++) {
		struct slot *slot;

		while (!(slot = slot_claim(&recorder.memory)))
			sched_yield(); /* the drain frees them */
		slot_activate(&recorder.memory, slot, 0x7fffffff, 100, 1000);
		for (uint64_t i = 0; i < BUSY_SAMPLES;) {
			struct made made = {(i % 3 ? 1000 * i : 1000 * i + (1ull << 27)),
					    i % 10 ? i : i + (1ull << 40)};

			i += slot_write_sample(&recorder.memory, slot, 0, made.time_ns, 0, 7,
					       made.count);
		}
		slot_end(&recorder.memory, slot, 1ull << 50);
	}
	atomic_fetch_sub(&busy_left, 1);
	return argument;
}

/* Flushes beside threads that write, fill packets, end, and use packets and slots again. */
static void test_flush__beside_busy_threads_is_exact(void **state)
{
	struct made *read = calloc(BUSY_THREADS * BUSY_LIVES * BUSY_SAMPLES, sizeof(*read));
	pthread_t threads[BUSY_THREADS];
	unsigned int number = 0;

	(void)state;
	assert_non_null(read);
	atomic_store(&busy_left, BUSY_THREADS);
	for (unsigned int i = 0; i < BUSY_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, be_busy, NULL), 0);
	while (atomic_load(&busy_left))
		drain_flush(&recorder);
	for (unsigned int i = 0; i < BUSY_THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	drain_end_image(&recorder, 1ull << 51);
	for (uint32_t i = 0; i < recorder.slots_seen; i++) {
		char name[32];
		unsigned int here;

		snprintf(name, sizeof(name), "slot_%04u", i);
		here = read_events(name, read, BUSY_THREADS * BUSY_LIVES * BUSY_SAMPLES);
		/* Whole lives, each in order: a slot's next thread follows the former. */
		assert_int_equal(here % BUSY_SAMPLES, 0);
		for (unsigned int k = 0; k < here; k++)
			assert_int_equal((uint32_t)read[k].count, k % BUSY_SAMPLES);
		number += here;
	}
	assert_int_equal(number, BUSY_THREADS * BUSY_LIVES * BUSY_SAMPLES);
	assert_int_equal(recorder.totals.samples, number);
	assert_int_equal(recorder.totals.nr_threads, BUSY_THREADS * BUSY_LIVES);
	free(read);
}

static void test_definitions__a_node_is_stored_as_the_format_says(void **state)
{
	struct memory *memory = &recorder.memory;
	uint8_t *bytes, *at;
	uint32_t id, value;
	uint64_t position;

	(void)state;
	id = table_node(memory, 0, 0, node_where(NODE_PYTHON, NODE_FLAG_ENTRY, 0x123456789abc));
	assert_int_equal(definitions_take(&recorder.definitions, memory), 0);
	assert_int_equal(definitions_flush(&recorder.definitions), 0);
	assert_int_equal(read_file("definitions", &bytes), CTF_PREFIX_BYTES + 4 + 22);
	at = bytes + CTF_PREFIX_BYTES;
	memcpy(&value, at, 4);
	assert_int_equal(value & 31, CTF_DEF_NODE);
	memcpy(&value, at + 4, 4);
	assert_int_equal(value, id);
	memcpy(&value, at + 8, 4);
	assert_int_equal(value, 0);
	assert_int_equal(at[12], NODE_PYTHON);
	assert_int_equal(at[13], NODE_FLAG_ENTRY);
	memcpy(&position, at + 18, 8);
	assert_int_equal(position, 0x123456789abc);
	free(bytes);
}

static void test_definitions__an_uncommitted_code_is_looked_at_again(void **state)
{
	struct memory *memory = &recorder.memory;
	uint8_t *text, *bytes;
	uint64_t text_at;
	uint32_t open_id, id;

	(void)state;
	open_id = table_reserve_code(memory, 8, &text, &text_at);
	id = table_reserve_code(memory, 8, &text, &text_at);
	assert_true(open_id == 1 && id == 2);
	memcpy(text, "namefile", 8);
	memory->codes[id].first_line = 77;
	memory->codes[id].name_at = text_at;
	memory->codes[id].name_length = 4;
	memory->codes[id].name_width = 1;
	memory->codes[id].file_at = text_at + 4;
	memory->codes[id].file_length = 4;
	memory->codes[id].file_width = 1;
	assert_int_equal(table_commit_code(memory, id, 0x1234), id);
	assert_int_equal(definitions_take(&recorder.definitions, memory), 0);
	assert_int_equal(recorder.definitions.nr_codes, 1);
	assert_int_equal(recorder.definitions.nr_code_holes, 1);
	memory->codes[open_id] = memory->codes[id];
	assert_int_equal(table_commit_code(memory, open_id, 0x1235), open_id);
	assert_int_equal(definitions_take(&recorder.definitions, memory), 0);
	assert_int_equal(recorder.definitions.nr_codes, 2);
	assert_int_equal(recorder.definitions.nr_code_holes, 0);
	assert_int_equal(definitions_flush(&recorder.definitions), 0);
	assert_int_equal(read_file("definitions", &bytes),
			 CTF_PREFIX_BYTES + 2 * (4 + 4 + 4 + 1 + 5 + 5 + 4));
	assert_memory_equal(bytes + CTF_PREFIX_BYTES + 13, "name\0file", 10);
	free(bytes);
}

/* The region can be written by the target: offsets in it prove nothing. */
static void test_definitions__wild_offsets_are_survived(void **state)
{
	struct memory *memory = &recorder.memory;
	uint64_t text_at;
	uint8_t *text;
	uint32_t id = table_reserve_code(memory, 8, &text, &text_at);

	(void)state;
	memory->codes[id].name_at = UINT64_MAX - 2;
	memory->codes[id].name_length = UINT32_MAX;
	memory->codes[id].name_width = 4;
	memory->codes[id].file_width = 9;
	memory->codes[id].line_table_at = UINT64_MAX - 1;
	memory->codes[id].line_table_length = UINT32_MAX;
	table_commit_code(memory, id, 0x99);
	assert_int_equal(definitions_take(&recorder.definitions, memory), 0);
	assert_int_equal(recorder.definitions.nr_codes, 1);
}

static void test_definitions__names_of_threads_become_text(void **state)
{
	struct thread_record thread = {.tid = 1, .name = "caf\xc3\xa9\xff\x01"};
	uint8_t *bytes;
	size_t length;

	(void)state;
	assert_int_equal(definitions_put_thread(&recorder.definitions, &thread), 0);
	assert_int_equal(definitions_flush(&recorder.definitions), 0);
	length = read_file("definitions", &bytes);
	assert_int_equal(length, CTF_PREFIX_BYTES + 4 + 12 + 56 + 14);
	assert_string_equal((char *)bytes + length - 14, "caf\xc3\xa9\\xff\\x01");
	free(bytes);
}

static void test_metadata__names_every_event_and_is_quoted(void **state)
{
	struct event_choice odd = event;
	struct record_request odd_request = request;
	char *text;

	(void)state;
	snprintf(odd.name, sizeof(odd.name), "a\"b\\c\nd");
	odd_request.events = &odd;
	recorder.request = &odd_request;
	text = metadata_text(&recorder);
	recorder.request = &request;
	assert_non_null(text);
	assert_memory_equal(text, "/* CTF 1.8 */", 13);
	assert_non_null(strstr(text, "\"sample:a\\\"b\\\\cd\"; id = 0; stream_id = 0;"));
	assert_non_null(strstr(text, "\"sample_wide:a\\\"b\\\\cd\"; id = 1; stream_id = 0;"));
	assert_non_null(strstr(text, "uuid = \"abababab-abab-abab-abab-abababababab\""));
	free(text);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_drain__full_packets_and_ends_reach_the_files),
		TEST(test_drain__threads_cut_off_lose_nothing),
		TEST(test_drain__a_slot_reused_goes_on_in_its_stream),
		TEST(test_drain__a_full_disk_cuts_at_a_packet_and_counts),
		TEST(test_drain__a_disk_full_from_the_start_leaves_no_empty_stream),
		TEST(test_drain__definitions_are_kept_over_a_full_disk),
		TEST(test_flush__parts_at_every_boundary_are_one_stream),
		TEST(test_parts__are_of_whole_events_alone),
		TEST(test_flush__a_packet_that_others_use_again_begins_anew),
		TEST(test_flush__full_packets_follow_their_parts),
		TEST(test_flush__never_overtakes_a_full_packet),
		TEST(test_flush__a_full_disk_loses_nothing_that_memory_holds),
		TEST(test_flush__discarded_counts_do_not_go_back),
		TEST(test_flush__beside_busy_threads_is_exact),
		TEST(test_definitions__a_node_is_stored_as_the_format_says),
		TEST(test_definitions__an_uncommitted_code_is_looked_at_again),
		TEST(test_definitions__wild_offsets_are_survived),
		TEST(test_definitions__names_of_threads_become_text),
		TEST(test_metadata__names_every_event_and_is_quoted),
	};

	signal(SIGXFSZ, SIG_IGN); /* as the recorder has it */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
