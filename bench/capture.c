/* SPDX-License-Identifier: MIT */
/*
 * What one sample costs inside the target: walk, identify, intern and append, by hand ticks in a
 * real interpreter, without a signal. Loaded by bench/capture.py through ctypes.PyDLL (the
 * interpreter lock is held, nothing else runs), which makes the stacks.
 *
 * The clock's own cost is measured and subtracted; results are medians in nanoseconds.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/capture/capture.h"

#define TICKS_MAX   200000
#define EVICT_BYTES (16u << 20) /* more than a core's share of the caches; about 1 ms to write */

#define EXPORT __attribute__((visibility("default")))

int bench_start(void);
void bench_reset(void);
void bench_tick(int evict);
void bench_ticks(int number);
double bench_median(void);
unsigned int bench_samples(void);
unsigned int bench_nodes(void);
unsigned int bench_codes(void);

static struct {
	struct capture capture;
	struct memory_ahead ahead;
	struct slot *slot;
	uint8_t *evict;
	double clock_ns;
	uint32_t nr_ticks;
	float ticks[TICKS_MAX];
} bench;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int compare_floats(const void *left, const void *right)
{
	float a = *(const float *)left, b = *(const float *)right;

	return (a > b) - (a < b);
}

EXPORT double bench_median(void)
{
	if (!bench.nr_ticks)
		return -1;
	qsort(bench.ticks, bench.nr_ticks, sizeof(*bench.ticks), compare_floats);
	return (double)bench.ticks[bench.nr_ticks / 2] - bench.clock_ns;
}

EXPORT void bench_reset(void)
{
	bench.nr_ticks = 0;
}

/* The recorder's part, outside the measured time: full packets, pages ahead of use. */
static void drain(void)
{
	static uint32_t indices[65536];
	uint32_t number = memory_take_full(&bench.capture.memory, indices);

	for (uint32_t i = 0; i < number; i++)
		packet_free(&bench.capture.memory, indices[i]);
	memory_prefault_ahead(&bench.capture.memory, &bench.ahead);
}

EXPORT void bench_tick(int evict)
{
	struct tick tick = {.count = 1000};
	uint64_t start;

	if (bench.nr_ticks == TICKS_MAX)
		return;
	if (evict)
		memset(bench.evict, (int)bench.nr_ticks, EVICT_BYTES);
	start = now_ns();
	tick.time_ns = start;
	capture_tick(&bench.capture, bench.slot, &tick);
	bench.ticks[bench.nr_ticks++] = (float)(now_ns() - start);
	drain();
}

EXPORT void bench_ticks(int number)
{
	while (number-- > 0)
		bench_tick(0);
}

EXPORT unsigned int bench_samples(void)
{
	return (unsigned int)atomic_load(&bench.slot->samples[0]);
}

EXPORT unsigned int bench_nodes(void)
{
	return atomic_load(&bench.capture.memory.header->nodes_used);
}

EXPORT unsigned int bench_codes(void)
{
	return atomic_load(&bench.capture.memory.header->codes_used);
}

static void measure_clock(void)
{
	bench_reset();
	for (int i = 0; i < 10000; i++) {
		uint64_t start = now_ns();

		bench.ticks[bench.nr_ticks++] = (float)(now_ns() - start);
	}
	bench.clock_ns = 0;
	bench.clock_ns = bench_median();
	bench_reset();
}

EXPORT int bench_start(void)
{
	struct memory_sizes sizes = memory_sizes_for(MEMORY_BYTES_DEFAULT);
	struct errbuf err;
	int fd, rc;

	rc = memory_create(&sizes, &bench.capture.memory, &fd, &err);
	if (rc)
		return rc;
	close(fd);
	rc = cpython_find(&bench.capture.cpython, &err);
	if (rc)
		return rc;
	bench.evict = malloc(EVICT_BYTES);
	if (!bench.evict)
		return -1;
	atomic_store(&bench.capture.memory.header->recording, 1);
	bench.slot = slot_claim(&bench.capture.memory);
	slot_activate(&bench.capture.memory, bench.slot, (uint32_t)getpid(),
		      (uint32_t)syscall(SYS_gettid), now_ns());
	measure_clock();
	return 0;
}
