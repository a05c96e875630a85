/* SPDX-License-Identifier: MIT */
/*
 * Fork children are not sampled: they have no timer and no event (the kernel does not copy
 * them), lose the pointer to their parent's slot, get the program's own signal actions back in
 * the kernel, and are listed. They keep the mapping, for listing what they start.
 *
 * fork() is not wrapped: the handler of pthread_atfork() runs in it, and ours, registered before
 * main(), is the first. _Fork() runs no handlers and is wrapped. A raw clone() or vfork() is
 * neither; agent_is_recorded_process() tells those children apart.
 */
#include "agent/guard/agent.h"

static void fork_child(void)
{
	if (agent_mode() != AGENT_RECORDING)
		return;
	for (uint32_t i = 0; i < agent.nr_sources; i++)
		if (agent.sources[i]->forked != NULL)
			agent.sources[i]->forked();
	masks_to_kernel();
	agent_slot = NULL;
	atomic_signal_fence(memory_order_seq_cst);
	dispositions_give_back();
	atomic_store_explicit(&agent.mode, AGENT_CHILD, memory_order_release);
	agent_list_process(PROCESS_FORKED, (uint32_t)getpid(), (uint32_t)getppid(), "");
}

void fork_watch(void)
{
	pthread_atfork(NULL, NULL, fork_child);
}

WRAPPER pid_t _Fork(void)
{
	pid_t pid = libc_next()->_Fork();

	if (pid == 0)
		fork_child();
	return pid;
}
