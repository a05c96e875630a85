/* SPDX-License-Identifier: MIT */
/*
 * Every table, and its number, which struct cpython carries: an address would hold in one process
 * alone. Private to this room.
 *
 * Add an entry at the end: X(name, walk), the names of the table and of the era's walk.
 */
#ifndef PATHPROF_CORE_CPYTHON_LAYOUTS_H
#define PATHPROF_CORE_CPYTHON_LAYOUTS_H

#include <stddef.h>

#include "core/cpython/layout_311.h"
#include "core/cpython/layout_312.h"
#include "core/cpython/layout_313.h"
#include "core/cpython/layout_313t.h"
#include "core/cpython/layout_314.h"
#include "core/cpython/layout_314t.h"
#include "core/cpython/layout_315.h"
#include "core/cpython/layout_315t.h"

#define CPYTHON_LAYOUTS(X) \
	X(311, walk_311)   \
	X(312, walk_312)   \
	X(313, walk_312)   \
	X(313t, walk_312)  \
	X(314, walk_312)   \
	X(314t, walk_312)  \
	X(315, walk_312)   \
	X(315t, walk_312)

enum cpython_layout_number {
	CPYTHON_LAYOUT_NONE,
#define X(name, walk) CPYTHON_LAYOUT_##name,
	CPYTHON_LAYOUTS(X)
#undef X
		NR_CPYTHON_LAYOUTS,
};

/* The table of a number that struct cpython carries; NULL for none. Signal-safe. */
static inline const struct cpython_layout *cpython_layout_at(uint32_t number)
{
	static const struct cpython_layout *const layouts[NR_CPYTHON_LAYOUTS] = {
#define X(name, walk) [CPYTHON_LAYOUT_##name] = &cpython_layout_##name,
		CPYTHON_LAYOUTS(X)
#undef X
	};

	return number < NR_CPYTHON_LAYOUTS ? layouts[number] : NULL;
}

#endif
