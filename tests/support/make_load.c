/* SPDX-License-Identifier: MIT */
/*
 * A recording of many samples. Stacks are a tree: two stacks k and l share the frames down to where
 * the numbers k and l, without their last bits, are equal; half a bit more counts at each depth. So
 * the 100,000 stacks of a recording have some 400,000 nodes, as a large program's.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/event/event.h"
#include "make_recording.h"

#define LINES_PER_CODE 32
#define PACKET_SAMPLES 4000
#define START_NS       1000000000ull

struct making {
	struct maker *maker;
	const struct maker_load *load;
	uint64_t random;
	double *weights;  /* zipf: summed up to each stack */
	uint32_t *leaves; /* node of each stack */
	uint32_t next_node;
};

static uint64_t next_random(uint64_t *state) /* splitmix64 */
{
	uint64_t value = *state += 0x9e3779b97f4a7c15ull;

	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
	value = (value ^ value >> 27) * 0x94d049bb133111ebull;
	return value ^ value >> 31;
}

static void *take(size_t number, size_t bytes)
{
	void *memory = calloc(number + 1, bytes);

	if (!memory)
		abort();
	return memory;
}

static void make_codes(struct making *making)
{
	char name[64], file[64];

	for (uint32_t i = 0; i < making->load->functions; i++) {
		snprintf(name, sizeof(name), "Class%u.method_%u", i / 10, i);
		snprintf(file, sizeof(file), "/srv/program/module_%u.py", i / 40);
		maker_code(making->maker, i + 1, name, file, 1 + i % 40 * LINES_PER_CODE,
			   LINES_PER_CODE);
	}
}

/* Define the nodes of one stack that no stack before it had. */
static void make_stack(struct making *making, uint32_t stack, uint32_t *last_key,
		       uint32_t *last_node)
{
	uint32_t depth = making->load->depth, parent = 0;

	for (uint32_t d = 0; d < depth; d++) {
		uint32_t shift = (depth - 1 - d) / 2;
		uint32_t key = (shift < 32 ? stack >> shift : 0) + 1;

		if (last_key[d] != key) {
			uint64_t random = (uint64_t)d << 32 | key;

			random = next_random(&random);
			maker_node(making->maker, ++making->next_node, parent, NODE_PYTHON,
				   1 + (uint32_t)(random % making->load->functions),
				   1 + (random >> 32) % LINES_PER_CODE);
			last_key[d] = key;
			last_node[d] = making->next_node;
		}
		parent = last_node[d];
	}
	making->leaves[stack] = parent;
}

static void make_stacks(struct making *making)
{
	uint32_t *last_key = take(making->load->depth, sizeof(*last_key));
	uint32_t *last_node = take(making->load->depth, sizeof(*last_node));
	double sum = 0;

	making->leaves = take(making->load->stacks, sizeof(*making->leaves));
	making->weights = take(making->load->stacks, sizeof(*making->weights));
	for (uint32_t i = 0; i < making->load->stacks; i++) {
		make_stack(making, i, last_key, last_node);
		sum += 1.0 / (i + 1);
		making->weights[i] = sum;
	}
	free(last_key);
	free(last_node);
}

static uint32_t choose_stack(struct making *making)
{
	uint64_t random = next_random(&making->random);
	uint32_t low = 0, high = making->load->stacks - 1;
	double wanted;

	if (!making->load->zipf)
		return (uint32_t)(random % making->load->stacks);
	wanted = (double)(random >> 11) / (double)(1ull << 53) * making->weights[high];
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (making->weights[middle] < wanted)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The samples of one thread, one a tick. */
static void make_thread(struct making *making, uint32_t thread, uint64_t nr_samples)
{
	const struct maker_load *load = making->load;
	uint64_t tick = START_NS + load->jitter_ns, time = tick;
	struct maker_thread record = {
		.pid = 100,
		.tid = 100 + thread,
		.start_ns = START_NS,
		.cpu_ns = nr_samples * load->period_ns,
		.samples = nr_samples,
		.name = thread ? "worker" : "python3",
	};

	for (uint64_t i = 0; i < nr_samples; i++) {
		uint32_t event = (uint32_t)(i % load->events);

		tick += load->period_ns;
		time = tick;
		if (load->jitter_ns) /* drawn once a sample: see the bytes that a sample needs */
			time += next_random(&making->random) % (2 * load->jitter_ns + 1) -
				load->jitter_ns;
		if (i % PACKET_SAMPLES == 0)
			maker_begin(making->maker, thread, record.pid, record.tid, time);
		maker_sample(making->maker, thread, event, time, 0,
			     making->leaves[choose_stack(making)], event ? 1 : load->period_ns);
	}
	record.end_ns = time;
	if (!load->incomplete)
		maker_thread(making->maker, &record);
}

struct maker_load maker_load_default(void)
{
	return (struct maker_load){
		.samples = 100000,
		.stacks = 1000,
		.depth = 16,
		.threads = 1,
		.events = 1,
		.functions = 2000,
		.period_ns = 4000000,
		.jitter_ns = 20000,
		.seed = 1,
	};
}

void maker_load(struct maker *maker, const struct maker_load *load)
{
	struct making making = {.maker = maker, .load = load, .random = load->seed};

	maker_manifest(maker, !load->incomplete, load->events, load->period_ns);
	make_codes(&making);
	make_stacks(&making);
	for (uint32_t i = 0; i < load->threads; i++)
		make_thread(&making, i,
			    load->samples / load->threads + (i < load->samples % load->threads));
	maker_process(maker, 100, 1, "python3 program.py", "");
	maker_finish(maker);
	free(making.leaves);
	free(making.weights);
}
