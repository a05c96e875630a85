/* SPDX-License-Identifier: MIT */
/*
 * The descriptors that a thread holds of its events by signal.
 */
#ifndef PATHPROF_AGENT_SOURCES_OWN_DESCRIPTOR_H
#define PATHPROF_AGENT_SOURCES_OWN_DESCRIPTOR_H

#include <stdint.h>

#include "core/memory/memory.h"

/** own_descriptor_begin - once in a process: what duplicates are taken through */
void own_descriptor_begin(void);

/**
 * own_descriptor_take - a first duplicate of one of the calling thread's events
 * Returns its number, which is slot->own_fds[event] then, or a negative errno. Signal-safe.
 */
int own_descriptor_take(struct slot *slot, uint32_t event);

/**
 * own_descriptor - the number that at this moment is the calling thread's descriptor of an event
 * Where the program closed it, or put another file there, or none was taken yet, a new duplicate.
 * Returns a negative errno where there is none to be had. Signal-safe.
 */
int own_descriptor(struct slot *slot, uint32_t event);

/**
 * own_descriptor_drop - disable an event of the calling thread, close its descriptor
 * A number that is not ours any more is left alone. No signal of the event finds it from here on.
 */
void own_descriptor_drop(struct slot *slot, uint32_t event);

/** own_descriptors_forked - in a fork child: close the copies of all threads' */
void own_descriptors_forked(void);

#endif
