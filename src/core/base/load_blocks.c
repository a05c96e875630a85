/* SPDX-License-Identifier: MIT */
/*
 * Pages of another process: each has some places, one behind the other, the first chosen by its
 * number. Where all of them are taken by others it pushes one out, which costs a call and nothing
 * else.
 */
#include "core/base/load_blocks.h"

#include <string.h>
#include <sys/uio.h>

#define PLACES 8 /* of a page */

_Static_assert((NR_LOAD_BLOCKS & (NR_LOAD_BLOCKS - 1)) == 0 && NR_LOAD_BLOCKS <= 256,
	       "first_place() masks, and a place fits a byte");

static unsigned int first_place(uint64_t number)
{
	return (number ^ number >> 7 ^ number >> 14) & (NR_LOAD_BLOCKS - 1);
}

/* Is the page in one of its places? */
static bool find(const struct load_blocks *blocks, uint64_t number, unsigned int *ret_place)
{
	unsigned int place = first_place(number);

	for (unsigned int i = 0; i < PLACES; i++, place = (place + 1) & (NR_LOAD_BLOCKS - 1)) {
		if (blocks->blocks[place].round != blocks->round ||
		    blocks->blocks[place].number != number)
			continue;
		*ret_place = place;
		return true;
	}
	return false;
}

/* A place for a page that has none: an empty one, else the first, if nobody waits for that. */
static bool find_room(const struct load_blocks *blocks, uint64_t number, unsigned int *ret_place)
{
	unsigned int first = first_place(number), place = first;

	for (unsigned int i = 0; i < PLACES; i++, place = (place + 1) & (NR_LOAD_BLOCKS - 1)) {
		if (blocks->blocks[place].round == blocks->round)
			continue;
		*ret_place = place;
		return true;
	}
	*ret_place = first;
	return blocks->blocks[first].state != LOAD_BLOCK_WANTED;
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
	unsigned int place;

	/* A place is noted once: who comes second waits for its own load. */
	if (find(blocks, number, &place) || !find_room(blocks, number, &place))
		return;
	occupy(blocks, place, number, LOAD_BLOCK_WANTED);
	blocks->wanted[blocks->nr_wanted++] = (uint8_t)place;
}

size_t load_blocks_list(const struct load_blocks *blocks, uint64_t *pages, size_t max)
{
	size_t nr = 0;

	for (unsigned int i = 0; i < NR_LOAD_BLOCKS && nr < max; i++)
		if (blocks->blocks[i].round == blocks->round &&
		    blocks->blocks[i].state == LOAD_BLOCK_READ)
			pages[nr++] = blocks->blocks[i].number * LOAD_BLOCK_BYTES;
	return nr;
}

/* The places to read: the page that is needed first, then those that are wanted, by number. */
static unsigned int list_places(struct load_blocks *blocks, unsigned int needed,
				uint8_t places[NR_LOAD_BLOCKS + 1])
{
	unsigned int nr = 1;

	places[0] = (uint8_t)needed;
	for (uint32_t i = 0; i < blocks->nr_wanted; i++) {
		uint8_t place = blocks->wanted[i];
		unsigned int at = nr;

		if (blocks->blocks[place].state != LOAD_BLOCK_WANTED)
			continue;
		for (;
		     at > 1 && blocks->blocks[places[at - 1]].number > blocks->blocks[place].number;
		     at--)
			places[at] = places[at - 1];
		places[at] = place;
		nr++;
	}
	blocks->nr_wanted = 0;
	return nr;
}

static struct iovec remote_page(uint64_t number)
{
	return (struct iovec){(void *)(uintptr_t)(number * LOAD_BLOCK_BYTES), LOAD_BLOCK_BYTES};
}

/*
 * Reads the page at the place @needed and what is wanted. The call ends at the first page that
 * cannot be read: if that is @needed it is bad, if another one, it and those behind it are read
 * when needed. Pages side by side are one piece to the kernel: half the price.
 */
static void read_blocks(struct load_blocks *blocks, unsigned int needed)
{
	struct iovec local[NR_LOAD_BLOCKS + 1], remote[NR_LOAD_BLOCKS + 1];
	uint64_t number = blocks->blocks[needed].number;
	unsigned int nr, nr_pieces = 1;
	uint8_t places[NR_LOAD_BLOCKS + 1];
	ssize_t length;

	blocks->blocks[needed].state = LOAD_BLOCK_BAD;
	nr = list_places(blocks, needed, places);
	local[0] = (struct iovec){blocks->bytes[needed], LOAD_BLOCK_BYTES};
	remote[0] = remote_page(number);
	for (unsigned int i = 1; i < nr; i++) {
		local[i] = (struct iovec){blocks->bytes[places[i]], LOAD_BLOCK_BYTES};
		if (blocks->blocks[places[i]].number == number + 1)
			remote[nr_pieces - 1].iov_len += LOAD_BLOCK_BYTES;
		else
			remote[nr_pieces++] = remote_page(blocks->blocks[places[i]].number);
		number = blocks->blocks[places[i]].number;
	}
	length = process_vm_readv(blocks->pid, local, nr, remote, nr_pieces, 0);
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
	unsigned int place;

	if (!find(blocks, number, &place)) {
		/* Who is wanted there is read when needed. */
		find_room(blocks, number, &place);
		occupy(blocks, place, number, LOAD_BLOCK_BAD);
		read_blocks(blocks, place);
	} else if (blocks->blocks[place].state == LOAD_BLOCK_WANTED) {
		read_blocks(blocks, place);
	}
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
