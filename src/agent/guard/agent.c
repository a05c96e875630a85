/* SPDX-License-Identifier: MIT */
/*
 * The agent's state, and small things that every wrapper needs.
 */
#include "agent/guard/agent.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

#define NS_PER_S	      1000000000ull
#define HEARTBEAT_STALE_TICKS 64 /* without a beat before its age is looked at */

struct agent agent;
__thread struct slot *agent_slot __attribute__((tls_model("initial-exec")));

const struct libc *libc_next(void)
{
	if (atomic_load_explicit(&agent.libc_found, memory_order_acquire))
		return &agent.libc;
		/* Two threads may both do this: they write the same. */
#define X(name) agent.libc.name = (__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name);
	LIBC_FUNCTIONS(X)
#undef X
	atomic_store_explicit(&agent.libc_found, 1, memory_order_release);
	return &agent.libc;
}

bool agent_is_recorded_process(void)
{
	return agent_mode() == AGENT_RECORDING && (uint32_t)getpid() == agent.pid;
}

uint64_t agent_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

bool agent_recorder_gone(uint64_t now_ns)
{
	const struct memory_header *header = agent.capture.memory.header;
	uint64_t beat_ns = atomic_load_explicit(&header->heartbeat_ns, memory_order_relaxed);

	return atomic_load_explicit(&header->closed, memory_order_relaxed) ||
	       (now_ns > beat_ns && now_ns - beat_ns > HEARTBEAT_STALE_NS);
}

bool agent_recorder_left(struct slot *slot, uint64_t now_ns)
{
	const struct memory_header *header = agent.capture.memory.header;
	uint64_t beat_ns = atomic_load_explicit(&header->heartbeat_ns, memory_order_relaxed);

	if (beat_ns != slot->heartbeat_seen) {
		slot->heartbeat_seen = beat_ns;
		slot->heartbeat_ticks = 0;
	}
	if (++slot->heartbeat_ticks < HEARTBEAT_STALE_TICKS)
		return false;
	slot->heartbeat_ticks = 0;
	return agent_recorder_gone(now_ns) && (uint32_t)getppid() != agent.parent;
}

bool agent_has_source(enum trigger trigger)
{
	for (uint32_t i = 0; i < agent.nr_sources; i++)
		if (agent.sources[i]->trigger == trigger)
			return true;
	return false;
}

void agent_list_process(enum process_how how, uint32_t pid, uint32_t ppid, const char *command)
{
	int saved_errno = errno;

	memory_add_process(&agent.capture.memory, how, pid, ppid, agent_now_ns(), command);
	errno = saved_errno;
}

uint32_t agent_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
	uint64_t deadline_ns = agent_now_ns() + timeout_ns;
	struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / NS_PER_S),
				    .tv_nsec = (long)(deadline_ns % NS_PER_S)};
	int saved_errno = errno;

	/* Interrupted waits go on until the deadline, which FUTEX_WAIT_BITSET takes as absolute. */
	while (atomic_load_explicit(word, memory_order_acquire) == value &&
	       agent_now_ns() < deadline_ns)
		syscall(SYS_futex, word, FUTEX_WAIT_BITSET, value, &deadline, NULL,
			FUTEX_BITSET_MATCH_ANY);
	errno = saved_errno;
	return atomic_load_explicit(word, memory_order_acquire);
}
