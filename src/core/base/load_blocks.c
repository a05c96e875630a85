/* SPDX-License-Identifier: MIT */
/*
 * Pages of another process: each has one place, chosen by its number. Two pages of one place push
 * each other out, which costs a call and nothing else.
 */
#include "core/base/load_blocks.h"

#include <string.h>
#include <sys/uio.h>

_Static_assert((NR_LOAD_BLOCKS & (NR_LOAD_BLOCKS - 1)) == 0 && NR_LOAD_BLOCKS <= 256,
	       "place_of() masks, and a place fits a byte");

static unsigned int place_of(uint64_t number)
{
	return (number ^ number >> 7 ^ number >> 14) & (NR_LOAD_BLOCKS - 1);
}

static bool is_here(const struct load_blocks *blocks, unsigned int place, uint64_t number)
{
	return blocks->blocks[place].round == blocks->round &&
	       blocks->blocks[place].number == number;
}

static void occupy(struct load_blocks *blocks, unsigned int place, uint64_t number,
		   enum load_block_state state)
{
	blocks->blocks[place].number = number;
	blocks->blocks[place].round = blocks->round;
	blocks->blocks[place].state = state;
}

void load_blocks_begin(struct load_blocks *blocks, pid_t pid)
{
	blocks->pid = pid;
	blocks->nr_wanted = 0;
	if (++blocks->round != 0)
		return;
	memset(blocks->blocks, 0, sizeof(blocks->blocks));
	blocks->round = 1;
}

void load_blocks_want(struct load_blocks *blocks, uint64_t address)
{
	uint64_t number = address / LOAD_BLOCK_BYTES;
	unsigned int place = place_of(number);

	/* A place is noted once: who comes second waits for its own load. */
	if (blocks->blocks[place].round == blocks->round &&
	    (blocks->blocks[place].number == number ||
	     blocks->blocks[place].state == LOAD_BLOCK_WANTED))
		return;
	occupy(blocks, place, number, LOAD_BLOCK_WANTED);
	blocks->wanted[blocks->nr_wanted++] = (uint8_t)place;
}

/*
 * Reads the block of @number and what is wanted. The call ends at the first block that cannot be
 * read: if that is @number it is bad, if another one, it and those behind it are read when needed.
 */
static void read_blocks(struct load_blocks *blocks, uint64_t number)
{
	struct iovec local[NR_LOAD_BLOCKS + 1] = {{0}}, remote[NR_LOAD_BLOCKS + 1] = {{0}};
	unsigned int places[NR_LOAD_BLOCKS + 1], nr = 1;
	ssize_t length;

	places[0] = place_of(number);
	occupy(blocks, places[0], number, LOAD_BLOCK_BAD);
	for (uint32_t i = 0; i < blocks->nr_wanted; i++)
		if (blocks->blocks[blocks->wanted[i]].state == LOAD_BLOCK_WANTED)
			places[nr++] = blocks->wanted[i];
	blocks->nr_wanted = 0;
	for (unsigned int i = 0; i < nr; i++) {
		local[i].iov_base = blocks->bytes[places[i]];
		remote[i].iov_base =
			(void *)(uintptr_t)(blocks->blocks[places[i]].number * LOAD_BLOCK_BYTES);
		local[i].iov_len = remote[i].iov_len = LOAD_BLOCK_BYTES;
	}
	length = process_vm_readv(blocks->pid, local, nr, remote, nr, 0);
	blocks->nr_calls++;
	for (unsigned int i = 0; i < nr; i++) {
		if (length >= (ssize_t)(i + 1) * LOAD_BLOCK_BYTES)
			blocks->blocks[places[i]].state = LOAD_BLOCK_READ;
		else if (i)
			blocks->blocks[places[i]].round = blocks->round - 1;
	}
}

static bool load_part(struct load_blocks *blocks, uint64_t address, void *to, size_t length)
{
	uint64_t number = address / LOAD_BLOCK_BYTES;
	unsigned int place = place_of(number);

	if (!is_here(blocks, place, number) || blocks->blocks[place].state == LOAD_BLOCK_WANTED)
		read_blocks(blocks, number);
	if (blocks->blocks[place].state != LOAD_BLOCK_READ)
		return false;
	memcpy(to, &blocks->bytes[place][address % LOAD_BLOCK_BYTES], length);
	return true;
}

bool load_from_blocks(struct load_blocks *blocks, uint64_t address, void *to, size_t length)
{
	uint8_t *at = to;

	while (length) {
		size_t rest = LOAD_BLOCK_BYTES - address % LOAD_BLOCK_BYTES;
		size_t part = length < rest ? length : rest;

		if (!load_part(blocks, address, at, part))
			return false;
		address += part; /* wraps at the end of the address space: nothing is read there */
		at += part;
		length -= part;
	}
	return true;
}
