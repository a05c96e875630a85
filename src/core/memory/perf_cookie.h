/* SPDX-License-Identifier: MIT */
/*
 * What the recorder writes into a perf event's attr.sig_data and the handler finds as si_perf_data:
 * whose event it is, and which.
 *
 *   63 .. 32 slot index    31 .. 24 event index    23 .. 0 low bits of the slot's generation
 *
 * A generation is never 0 in a claimed slot, so a sig_data of 0 is not ours. An inherited event has
 * the cookie of no slot: whatever thread it hits is meant.
 */
#ifndef PATHPROF_CORE_MEMORY_PERF_COOKIE_H
#define PATHPROF_CORE_MEMORY_PERF_COOKIE_H

#include <stdint.h>

#define PERF_COOKIE_GENERATION_MASK 0xffffffu

static inline uint64_t perf_cookie(uint32_t slot_index, uint32_t event, uint32_t generation)
{
	return (uint64_t)slot_index << 32 | (uint64_t)(event & 0xff) << 24 |
	       (generation & PERF_COOKIE_GENERATION_MASK);
}

/* Of an event that all threads inherit. */
#define PERF_COOKIE_ANY_SLOT UINT32_MAX

static inline uint64_t perf_cookie_inherited(uint32_t event)
{
	return perf_cookie(PERF_COOKIE_ANY_SLOT, event, PERF_COOKIE_GENERATION_MASK);
}

static inline uint32_t perf_cookie_slot(uint64_t cookie)
{
	return (uint32_t)(cookie >> 32);
}

static inline uint32_t perf_cookie_event(uint64_t cookie)
{
	return (uint32_t)(cookie >> 24) & 0xff;
}

static inline uint32_t perf_cookie_generation(uint64_t cookie)
{
	return (uint32_t)cookie & PERF_COOKIE_GENERATION_MASK;
}

#endif
