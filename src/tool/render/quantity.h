/* SPDX-License-Identifier: MIT */
/* Numbers for people: 1,234  12.3M  1.23 s  45.6 ms  7.1% */
#ifndef PATHPROF_TOOL_RENDER_QUANTITY_H
#define PATHPROF_TOOL_RENDER_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

/* A number as text, to be used at once: quantity_count(n).text */
struct quantity {
	char text[32];
};

struct quantity quantity_exact(uint64_t number);	    /* 1,234,567 */
struct quantity quantity_count(uint64_t number);	    /* 3 digits: 999  1.23k  12.3M */
struct quantity quantity_time(uint64_t ns);		    /* 3 digits: 1.23 s  45.6 ms  7 ns */
struct quantity quantity_period(uint64_t ns);		    /* 4 digits: 10 ms  1.235 ms */
struct quantity quantity_of(uint64_t number, bool is_time); /* time or count */
struct quantity quantity_percent(uint64_t part, uint64_t whole); /* 7.1%; whole 0: 0.0% */

#endif
