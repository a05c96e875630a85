/* SPDX-License-Identifier: MIT */
/*
 * x86-64: a call that the kernel set to begin again is one where the program counter stands at a
 * `syscall` instruction (0f 05) whose effects are already there: rcx is the address behind it and
 * r11 the flags (AMD64 manual, SYSCALL). Before the first execution they hold anything else.
 */
#include "agent/sources/interrupted_call.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "core/base/load.h"

#define SYSCALL_BYTES 2
#define SIGNALS_MAX   64

/* The kernel's own sigaction: libc's hides signals 32 and 33, and ours is wrapped. */
struct kernel_sigaction {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

static bool begins_again(const greg_t *registers)
{
	const struct reader here = {.kind = READER_DIRECT};
	uint64_t pc = (uint64_t)registers[REG_RIP];
	uint8_t first, second;

	return (uint64_t)registers[REG_RCX] == pc + SYSCALL_BYTES &&
	       registers[REG_R11] == registers[REG_EFL] && load_u8(here, pc, &first) &&
	       load_u8(here, pc + 1, &second) && first == 0x0f && second == 0x05;
}

static bool ends_calls(int signo)
{
	struct kernel_sigaction action;

	if (syscall(SYS_rt_sigaction, signo, NULL, &action, sizeof(action.mask)) != 0)
		return false;
	return action.handler != SIG_DFL && action.handler != SIG_IGN &&
	       !(action.flags & SA_RESTART);
}

void interrupted_call_settle(void *context)
{
	ucontext_t *interrupted = context;
	greg_t *registers = interrupted->uc_mcontext.gregs;
	uint64_t pending, blocked;

	if (!begins_again(registers))
		return;
	if (syscall(SYS_rt_sigpending, &pending, sizeof(pending)) != 0)
		return;
	__builtin_memcpy(&blocked, &interrupted->uc_sigmask, sizeof(blocked));
	pending &= ~blocked & ~(1ull << (SIGTRAP - 1));
	for (int signo = 1; signo <= SIGNALS_MAX && pending; signo++) {
		if (!(pending >> (signo - 1) & 1) || !ends_calls(signo))
			continue;
		registers[REG_RIP] += SYSCALL_BYTES;
		registers[REG_RAX] = -EINTR;
		return;
	}
}
