/* SPDX-License-Identifier: MIT */
/*
 * Of each wait the length is known to the nanosecond, and whether its thread was preempted; where
 * and for what a thread waited only of those that were looked at. So nothing is estimated but the
 * place: waits that were not looked at are told as the next one of their thread that is, of those
 * that are about as long. The sum over a thread's waits is exact.
 *
 *   lengths   .2.  .2.  ....9....  .2.  .2.  .2.  ....9....
 *   looked at            x               x         x
 *   counts               9               8         9          the last 2 as the second look's place
 *
 * Looks are made at a time, whatever the thread does then, so a place is met in proportion to the
 * time that waits of one length take there. Of long waits each is looked at, of short ones few:
 * that is why lengths are kept apart. Within an octave the time before a look does not depend on
 * which of its waits that will be.
 *
 * What is left at the end of a thread is told as its last look at the waits most alike in length. A
 * thread that ends without such a look leaves its time to the first look of that sort in a
 * later thread: many short threads are one population. What is left at the end is told as unseen,
 * or as runnable, which is known without a look, but never as a place or a plain wait.
 */
#include "tool/reader/estimate.h"

#include <stddef.h>

#define SHORTEST_BITS 11 /* the first octave ends at 2^11 ns */
#define ALIKE	      2	 /* octaves, up to which a look stands for waits of a sort without one */

static unsigned int length_of(uint64_t length_ns)
{
	unsigned int bits = length_ns ? 64 - (unsigned int)__builtin_clzll(length_ns) : 0;
	unsigned int length = bits > SHORTEST_BITS ? bits - SHORTEST_BITS : 0;

	return length < ESTIMATE_LENGTHS ? length : ESTIMATE_LENGTHS - 1;
}

void estimate_unseen(struct estimate *estimate, bool preempted, uint64_t length_ns)
{
	estimate->sorts[preempted][length_of(length_ns)].unseen_ns += length_ns;
}

uint64_t estimate_seen(struct estimate *estimate, struct estimate *ended, bool preempted,
		       uint64_t length_ns, const struct estimate_place *place)
{
	unsigned int length = length_of(length_ns);
	struct estimate_sort *sort = &estimate->sorts[preempted][length];
	struct estimate_sort *left = &ended->sorts[preempted][length];
	uint64_t count = length_ns + sort->unseen_ns;

	if (!sort->last.kind) {
		count += left->unseen_ns;
		left->unseen_ns = 0;
	}
	sort->unseen_ns = 0;
	sort->last = *place;
	return count;
}

/* The look at the waits nearest to that length; NULL: at none that is alike. */
static const struct estimate_place *nearest(const struct estimate_sort *sorts, unsigned int length)
{
	for (unsigned int off = 0; off <= ALIKE; off++) {
		if (length + off < ESTIMATE_LENGTHS && sorts[length + off].last.kind)
			return &sorts[length + off].last;
		if (length >= off && sorts[length - off].last.kind)
			return &sorts[length - off].last;
	}
	return NULL;
}

void estimate_finish(struct estimate *estimate, struct estimate *ended,
		     void (*each)(void *user, const struct estimate_place *place, uint64_t count),
		     void *user)
{
	const struct estimate_place unknown[] = {{0, WAIT_UNSEEN}, {0, WAIT_RUNNABLE}};
	uint64_t unseen_ns[2] = {0, 0};

	for (unsigned int i = 0; i < 2 * ESTIMATE_LENGTHS; i++) {
		bool preempted = i >= ESTIMATE_LENGTHS;
		unsigned int length = i % ESTIMATE_LENGTHS;
		struct estimate_sort *sort = &estimate->sorts[preempted][length];
		const struct estimate_place *place = nearest(estimate->sorts[preempted], length);

		if (!sort->unseen_ns)
			continue;
		if (place)
			each(user, place, sort->unseen_ns);
		else if (ended)
			ended->sorts[preempted][length].unseen_ns += sort->unseen_ns;
		else
			unseen_ns[preempted] += sort->unseen_ns;
		sort->unseen_ns = 0;
	}
	for (unsigned int i = 0; i < 2; i++) {
		if (unseen_ns[i])
			each(user, &unknown[i], unseen_ns[i]);
	}
}
