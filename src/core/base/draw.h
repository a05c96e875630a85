/* SPDX-License-Identifier: MIT */
/*
 * Numbers that are spread, not secret: what is drawn again from the same seed. Signal-safe.
 */
#ifndef PATHPROF_CORE_BASE_DRAW_H
#define PATHPROF_CORE_BASE_DRAW_H

#include <stdint.h>

/**
 * draw_seed - the state to begin with; seeds and streams that differ a little give states that
 * differ much (splitmix64)
 */
static inline uint64_t draw_seed(uint64_t seed, uint64_t stream)
{
	uint64_t state = seed + (stream + 1) * 0x9e3779b97f4a7c15ull;

	state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ull;
	state = (state ^ (state >> 27)) * 0x94d049bb133111ebull;
	state ^= state >> 31;
	return state ? state : 1; /* xorshift stays at 0 */
}

/** draw_below - the next number, from 0 to @below - 1 (xorshift64); @below is not 0 */
static inline uint64_t draw_below(uint64_t *state, uint64_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state % below;
}

#endif
