/* SPDX-License-Identifier: MIT */
/*
 * Pages of another process, for READER_BLOCKS.
 *
 * A system call costs as much as copying many pages, so a page is read once and whole, and what is
 * known to be needed soon is read with it: load_blocks_want() notes a page, and the next load that
 * finds its page missing reads all noted ones with one process_vm_readv().
 *
 * What was read stays until load_blocks_begin(): the caller begins anew for each look, and knows by
 * other means whether the process stood still meanwhile.
 */
#ifndef PATHPROF_CORE_BASE_LOAD_BLOCKS_H
#define PATHPROF_CORE_BASE_LOAD_BLOCKS_H

#include "core/base/load.h"

#define LOAD_BLOCK_BYTES 4096 /* the smallest page there is: a block is readable as a whole */
#define NR_LOAD_BLOCKS	 128  /* a power of two; a stack of 20 frames needs some 30 */

enum load_block_state {
	LOAD_BLOCK_WANTED,
	LOAD_BLOCK_READ,
	LOAD_BLOCK_BAD, /* nothing readable there */
};

/* 520 KiB: on the heap or static. Zeroed, then load_blocks_begin(). */
struct load_blocks {
	pid_t pid;
	uint32_t round;	    /* what belongs to another one is old */
	uint32_t nr_wanted; /* entries of @wanted */
	uint32_t nr_calls;  /* of process_vm_readv(), since the struct was zeroed */
	uint8_t wanted[NR_LOAD_BLOCKS];
	struct {
		uint64_t number; /* address / LOAD_BLOCK_BYTES */
		uint32_t round;
		uint32_t state; /* enum load_block_state */
	} blocks[NR_LOAD_BLOCKS];
	uint8_t bytes[NR_LOAD_BLOCKS][LOAD_BLOCK_BYTES];
};

/** load_blocks_begin - forget what was read; from now on read @pid */
void load_blocks_begin(struct load_blocks *blocks, pid_t pid);

/** load_blocks_want - the page of @address will be needed. A hint; a bad address is no fault. */
void load_blocks_want(struct load_blocks *blocks, uint64_t address);

/** load_blocks_list - addresses of the pages read since load_blocks_begin(), @max at most; their
 * number */
size_t load_blocks_list(const struct load_blocks *blocks, uint64_t *pages, size_t max);

#endif
