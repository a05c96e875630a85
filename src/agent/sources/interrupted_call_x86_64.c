/* SPDX-License-Identifier: MIT */
/*
 * x86-64: a call that the kernel set to begin again is one where the program counter stands at a
 * `syscall` instruction (0f 05) whose effects are already there: rcx is the address behind it and
 * r11 the flags (AMD64 manual, SYSCALL). Before the first execution they hold anything else.
 * Processors that enter the kernel by FRED keep both as they were: there nothing is seen here, and
 * it is as on aarch64.
 *
 * What then happens is handle_signal()'s (arch/x86/kernel/signal.c): the first signal that has a
 * handler decides. A few calls begin again whatever that handler says (-ERESTARTNOINTR); those
 * that never do (-ERESTARTNOHAND, a restart block) have EINTR already and are not seen here.
 */
#include "agent/sources/interrupted_call.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "agent/sources/signal_33.h"
#include "core/base/load.h"

#define SYSCALL_BYTES 2
#define SIGNALS_MAX   64
#define SIGNAL_RT_MIN 32 /* the kernel's: from here on signals queue, in order */

/* Signals that a thread causes itself. */
#define BIT(signo) (1ull << ((signo)-1))
#define FAULTS	   (BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGILL) | BIT(SIGTRAP) | BIT(SIGSYS))

extern char __libc_single_threaded __attribute__((weak)); /* since glibc 2.32 */

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

/*
 * Is it one that a handler without SA_RESTART ends? (signal(7).) Fork, futexes with priority
 * inheritance and others begin again in any case; and a call in a loop may look begun before it is
 * (rcx and r11 of the last time), which must not give EINTR where no program expects it.
 */
static bool can_be_ended(int64_t number, const greg_t *registers)
{
	switch (number) {
	case SYS_read:
	case SYS_readv:
	case SYS_write:
	case SYS_writev:
	case SYS_splice:
	case SYS_tee:
	case SYS_vmsplice:
	case SYS_sendfile:
	case SYS_ioctl:
	case SYS_open:
	case SYS_openat:
	case SYS_wait4:
	case SYS_waitid:
	case SYS_accept:
	case SYS_accept4:
	case SYS_connect:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_flock:
	case SYS_fcntl:
	case SYS_mq_timedreceive:
	case SYS_mq_timedsend:
	case SYS_getrandom:
		return true;
	case SYS_futex:
		return (registers[REG_RSI] & FUTEX_CMD_MASK) == FUTEX_WAIT ||
		       (registers[REG_RSI] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
	default:
		return false;
	}
}

enum verdict {
	NO_HANDLER,
	RESTARTS,
	ENDS_CALLS,
};

static enum verdict verdict_of(int signo)
{
	struct kernel_sigaction action;

	if (syscall(SYS_rt_sigaction, signo, NULL, &action, sizeof(action.mask)) != 0 ||
	    action.handler == SIG_DFL || action.handler == SIG_IGN)
		return NO_HANDLER;
	return action.flags & SA_RESTART ? RESTARTS : ENDS_CALLS;
}

/*
 * A signal of the whole process that is blocked here goes to another thread that does not block it
 * (retarget_shared_pending()), where without us its handler would run in this one, and before the
 * call returns. So take it, if it is still there, and send it to this thread with what it says.
 * Returns false if another thread was first.
 */
static bool keep_here(int signo)
{
	const struct timespec no_time = {0};
	uint64_t one = BIT(signo);
	siginfo_t info;

	if (signo >= SIGNAL_RT_MIN)
		return true;
	if (syscall(SYS_rt_sigtimedwait, &one, &info, &no_time, sizeof(one)) != signo)
		return false;
	syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), signo, &info);
	return true;
}

/*
 * Our SIGTRAP is queued on the way out of the kernel and breaks no call off itself: something else
 * did. Where nothing is pending any more, a thread that was woken on this processor took it before
 * we ran. Which signal it was is not known: any of the program's that would end the call counts.
 * (A stop and a continuation look the same; a program with such handlers knows EINTR.)
 */
static bool may_have_been_taken(uint64_t blocked)
{
	if (&__libc_single_threaded == NULL || __libc_single_threaded)
		return false;
	for (int signo = 1; signo < SIGNAL_RT_MIN; signo++)
		if (!((blocked | FAULTS) >> (signo - 1) & 1) && verdict_of(signo) == ENDS_CALLS)
			return true;
	return false;
}

/* As the first of @pending that has a handler says. */
static bool is_ended(uint64_t pending, uint64_t blocked)
{
	for (int signo = 1; signo <= SIGNALS_MAX && pending; signo++) {
		enum verdict verdict = NO_HANDLER;

		if (pending >> (signo - 1) & 1)
			verdict = verdict_of(signo);
		if (verdict != NO_HANDLER && keep_here(signo))
			return verdict == ENDS_CALLS;
	}
	return may_have_been_taken(blocked);
}

void interrupted_call_settle(void *context)
{
	ucontext_t *interrupted = context;
	greg_t *registers = interrupted->uc_mcontext.gregs;
	uint64_t pending, blocked;

	if (!begins_again(registers) || !can_be_ended(registers[REG_RAX], registers))
		return;
	if (syscall(SYS_rt_sigpending, &pending, sizeof(pending)) != 0)
		return;
	__builtin_memcpy(&blocked, &interrupted->uc_sigmask, sizeof(blocked));
	if (!is_ended(pending & ~blocked & ~BIT(SIGTRAP) & ~BIT(SIGNAL_33), blocked))
		return;
	registers[REG_RIP] += SYSCALL_BYTES;
	registers[REG_RAX] = -EINTR;
}

/* ---- a signal that ought to have broken nothing off ---- */

#define NUMBER_BYTES 5 /* mov $number, %eax */
#define LOAD_BYTES   5 /* at most: mov disp8(%rsp), %register */

/* Is it one load of another register from the stack? None at all will do. */
static bool is_argument_load(const uint8_t *code, unsigned int length)
{
	if (length > 0 && code[0] == 0x48) {
		code++;
		length--;
	}
	if (length == 0)
		return true;
	return length >= 3 && code[0] == 0x8b && code[2] == 0x24 && code[1] != 0x44 &&
	       ((length == 3 && (code[1] & 0xc7) == 0x04) ||
		(length == 4 && (code[1] & 0xc7) == 0x44));
}

/*
 * Behind a call that gave EINTR its number is gone from the registers; most calls of libc have it
 * in the instruction before, or in the last but one where they may be cancelled. Read as another
 * process's memory is: this may be the handler of SIGSEGV.
 */
static bool number_of_ended(const greg_t *registers, uint32_t *ret_number)
{
	uint64_t pc = (uint64_t)registers[REG_RIP];
	uint8_t code[NUMBER_BYTES + LOAD_BYTES + SYSCALL_BYTES];
	const uint8_t *call = code + NUMBER_BYTES + LOAD_BYTES;

	if (registers[REG_RAX] != -EINTR || (uint64_t)registers[REG_RCX] != pc ||
	    registers[REG_R11] != registers[REG_EFL] ||
	    !load_remote(getpid(), pc - sizeof(code), code, sizeof(code)) || call[0] != 0x0f ||
	    call[1] != 0x05)
		return false;
	if (call[-2] == 0x31 && call[-1] == 0xc0) { /* xor %eax, %eax */
		*ret_number = SYS_read;
		return true;
	}
	for (unsigned int length = 0; length <= LOAD_BYTES; length++) {
		const uint8_t *move = call - length - NUMBER_BYTES;

		if (move[0] != 0xb8 || !is_argument_load(call - length, length))
			continue;
		__builtin_memcpy(ret_number, move + 1, sizeof(*ret_number));
		return true;
	}
	return false;
}

enum continuation {
	STAYS_ENDED,
	BEGINS_AGAIN, /* the arguments tell how long, or the kernel has corrected them */
	HAS_RESTART,  /* the kernel knows the rest: restart_syscall(2) */
};

static enum continuation continuation_of(uint32_t number, const greg_t *registers)
{
	int command = (int)registers[REG_RSI] & FUTEX_CMD_MASK;
	bool no_timeout = registers[REG_R10] == 0;

	switch (number) {
	case SYS_poll:
	case SYS_nanosleep:
		return HAS_RESTART;
	case SYS_clock_nanosleep:
		return registers[REG_RSI] & TIMER_ABSTIME ? BEGINS_AGAIN : HAS_RESTART;
	case SYS_futex:
		if (command == FUTEX_WAIT)
			return no_timeout ? BEGINS_AGAIN : HAS_RESTART;
		return command == FUTEX_WAIT_BITSET ? BEGINS_AGAIN : STAYS_ENDED;
	case SYS_pause:
	case SYS_rt_sigsuspend:
	case SYS_select:
	case SYS_pselect6:
	case SYS_ppoll:
	case SYS_msgrcv:
	case SYS_msgsnd:
	case SYS_semop:
		return BEGINS_AGAIN;
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		return (int)registers[REG_R10] < 0 ? BEGINS_AGAIN : STAYS_ENDED;
	case SYS_epoll_pwait2:
	case SYS_semtimedop:
		return no_timeout ? BEGINS_AGAIN : STAYS_ENDED;
	case SYS_rt_sigtimedwait:
		return registers[REG_RDX] == 0 ? BEGINS_AGAIN : STAYS_ENDED;
	default:
		return can_be_ended(number, registers) ? BEGINS_AGAIN : STAYS_ENDED;
	}
}

/* Does a pending signal end the call? With @any_handler also one with SA_RESTART. */
static bool is_ended_by(uint64_t pending, bool any_handler)
{
	for (int signo = 1; signo <= SIGNALS_MAX && pending; signo++) {
		enum verdict verdict = NO_HANDLER;

		if (pending >> (signo - 1) & 1)
			verdict = verdict_of(signo);
		if (verdict != NO_HANDLER)
			return any_handler || verdict == ENDS_CALLS;
	}
	return false;
}

/*
 * What is left of the wait, under the program's mask. A signal of the program's runs its handler on
 * top of ours and ends it, as it would have ended the call. More of @signo wait until it is over,
 * or handlers would pile up.
 */
static void wait_out(int signo, ucontext_t *interrupted)
{
	uint64_t mask, before;
	long r;

	__builtin_memcpy(&mask, &interrupted->uc_sigmask, sizeof(mask));
	mask |= BIT(signo) | BIT(SIGTRAP);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &before, sizeof(mask));
	r = syscall(SYS_restart_syscall);
	interrupted->uc_mcontext.gregs[REG_RAX] = r < 0 ? -errno : r;
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(mask));
}

/*
 * Signals that come between the look at what is pending and the return do not end the call: some
 * microseconds, for a signal that nobody sends to a program that does not want it.
 */
void interrupted_call_resume(int signo, void *context)
{
	ucontext_t *interrupted = context;
	greg_t *registers = interrupted->uc_mcontext.gregs;
	enum continuation how = STAYS_ENDED;
	bool was_begun = begins_again(registers) && can_be_ended(registers[REG_RAX], registers);
	uint64_t pending, blocked;
	uint32_t number = 0;

	if (!was_begun && number_of_ended(registers, &number))
		how = continuation_of(number, registers);
	if ((!was_begun && how == STAYS_ENDED) ||
	    syscall(SYS_rt_sigpending, &pending, sizeof(pending)) != 0)
		return;
	__builtin_memcpy(&blocked, &interrupted->uc_sigmask, sizeof(blocked));
	pending &= ~(blocked | BIT(signo) | BIT(SIGTRAP) | BIT(SIGNAL_33));
	if (is_ended_by(pending, !was_begun && !can_be_ended(number, registers))) {
		if (was_begun) {
			registers[REG_RIP] += SYSCALL_BYTES;
			registers[REG_RAX] = -EINTR;
		}
	} else if (how == HAS_RESTART) {
		wait_out(signo, interrupted);
	} else if (how == BEGINS_AGAIN) {
		registers[REG_RIP] -= SYSCALL_BYTES;
		registers[REG_RAX] = number;
	}
}
