/* SPDX-License-Identifier: MIT */
/*
 * A tick becomes a sample: the part of the signal handler that does the work. Printable.
 *
 *   wanted at all?    -> no: nothing, not counted (--delay, --duration)
 *   inside already?   -> LOSS_NESTED; not if it was left by a longjmp: then that one is lost
 *   too soon?         -> LOSS_THROTTLED
 *   walk and intern   -> LOSS_TABLE_FULL
 *   without the lock? -> left out, where only samples with it are wanted (--gil)
 *   append            -> LOSS_BUFFER_FULL
 *
 * Cost of a repeated stack: the walk and the hash of each code object (core/cpython), the
 * comparison (python_stack.c), the 16-byte event, two readings of the clock (the caller's
 * included). No system call but the futex wake at the end of a packet, about every thousandth
 * sample. Arrays are in the slot, not on the stack of the program.
 */
#include "agent/capture/capture.h"

#include <string.h>
#include <time.h>

#include "agent/capture/python_stack.h"

#define NESTED_MAX 64 /* ticks in a row: more cannot be nested */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now); /* in the vDSO: no system call, errno kept */
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* For the manifest, and for stacks that are read from outside. */
static void tell_interpreter(struct capture *capture, enum memory_late late)
{
	struct memory_interpreter *told = &capture->memory.header->interpreter;

	told->late_version = capture->late.version;
	cpython_late_path(&capture->late, told->late_path, sizeof(told->late_path));
	atomic_store_explicit(&told->late, late, memory_order_release);
	if (late != MEMORY_LATE_READ)
		return;
	told->runtime_bytes = capture->late.runtime_bytes;
	memcpy(told->cpython, &capture->cpython, sizeof(capture->cpython));
	atomic_store_explicit(&told->known, 1, memory_order_release);
}

/* Is there an interpreter to be read? One that was loaded meanwhile is found here. */
static bool has_interpreter(struct capture *capture, const struct tick *tick)
{
	if (__atomic_load_n(&capture->cpython.layout, __ATOMIC_ACQUIRE))
		return true;
	if (tick->faults_blocked)
		return false;
	switch (cpython_late_look(&capture->late, &capture->cpython)) {
	case CPYTHON_LATE_READABLE:
		tell_interpreter(capture, MEMORY_LATE_READ);
		return true;
	case CPYTHON_LATE_UNREADABLE:
		tell_interpreter(capture, MEMORY_LATE_UNREADABLE);
		capture->no_interpreter = 1;
		return false;
	default:
		return false;
	}
}

/* Returns false: the table is full. */
static bool python_chain(struct capture *capture, struct slot *slot, const struct tick *tick,
			 struct python_chain *ret_chain)
{
	uint64_t thread_state;
	enum cpython_end end;
	size_t nr_frames;
	bool holds_lock;

	slot->holds_lock = 0;
	if (!has_interpreter(capture, tick)) {
		if (capture->no_interpreter)
			ret_chain->degraded = 1u << DEGRADED_NO_INTERPRETER;
		return true;
	}
	/* A load that faults while SIGSEGV is blocked kills the program, so none is tried. */
	if (tick->faults_blocked)
		return python_stack_unreadable(capture, DEGRADED_FAULTS_BLOCKED, ret_chain);
	thread_state = cpython_thread_state(&capture->cpython, slot->tid, &holds_lock);
	slot->holds_lock = holds_lock;
	if (!thread_state)
		return true;
	nr_frames = cpython_walk(&capture->cpython, thread_state,
				 (struct cpython_frame *)slot->walk, FRAMES_MAX, &end);
	if (!python_stack_intern(capture, slot, nr_frames, end, ret_chain))
		return false;
	if (holds_lock && nr_frames && cpython_runs_jitted(&capture->cpython, thread_state))
		ret_chain->degraded |= 1u << DEGRADED_JIT_POSITION;
	return true;
}

static void take_sample(struct capture *capture, struct slot *slot, const struct tick *tick)
{
	struct python_chain chain = {0};

	if (!python_chain(capture, slot, tick, &chain)) {
		slot_refuse(slot, tick->event, LOSS_TABLE_FULL);
		return;
	}
	if (capture->memory.header->only_locked && !slot->holds_lock) {
		slot_add(&slot->left_out, 1);
		slot_add(&slot->refused[tick->event], 1); /* it came */
		return;
	}
	if (!slot_write_sample(&capture->memory, slot, tick->event, tick->time_ns, 0, chain.node,
			       tick->count))
		return;
	for (unsigned int reason = 0; chain.degraded && reason < NR_DEGRADED_REASONS; reason++)
		if (chain.degraded & 1u << reason)
			slot_degrade(slot, reason);
}

/* The first tick of an event is never too soon; a refused one does not put off the next. */
static bool too_soon(const struct capture *capture, const struct slot *slot,
		     const struct tick *tick)
{
	uint64_t last_ns = slot->last_tick_ns[tick->event];

	return last_ns != 0 &&
	       tick->time_ns - last_ns < capture->memory.header->events[tick->event].min_gap_ns;
}

/*
 * Is the handler that is inside one whose frame is gone? A handler of the program's ran over it (of
 * a SIGSEGV that somebody sent: all else waits) and left by siglongjmp(). What interrupts lies
 * below on the stack. Where it went deeper since, or to another stack, ticks tell: they are blocked
 * in handlers, so that hardly one is nested.
 */
static bool was_left(const struct slot *slot, uintptr_t frame)
{
	return slot->busy_at != 0 && (frame >= slot->busy_at || slot->nested > NESTED_MAX);
}

/* Returns false: it is taken, by a handler that this one interrupts. */
static bool enter(struct capture *capture, struct slot *slot, uint32_t event)
{
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);

	if (atomic_load_explicit(&slot->busy, memory_order_relaxed)) {
		slot->nested++;
		if (!was_left(slot, frame))
			return false;
		slot_refuse(slot, slot->busy_event, LOSS_NESTED);
		slot_recover(&capture->memory, slot);
	}
	slot->nested = 0;
	slot->busy_at = frame;
	slot->busy_event = event;
	atomic_store_explicit(&slot->busy, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	return true;
}

void capture_tick(struct capture *capture, struct slot *slot, const struct tick *tick)
{
	uint64_t end_ns;

	if (!atomic_load_explicit(&capture->memory.header->recording, memory_order_relaxed))
		return;
	if (!enter(capture, slot, tick->event)) {
		slot_refuse(slot, tick->event, LOSS_NESTED);
		return;
	}
	slot_add(&slot->overrun, tick->overrun);
	if (too_soon(capture, slot, tick)) {
		slot_refuse(slot, tick->event, LOSS_THROTTLED);
	} else {
		slot->last_tick_ns[tick->event] = tick->time_ns;
		take_sample(capture, slot, tick);
	}
	end_ns = now_ns();
	if (end_ns > tick->time_ns)
		slot_add(&slot->handler_ns, end_ns - tick->time_ns);

	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&slot->busy, 0, memory_order_relaxed);
}
