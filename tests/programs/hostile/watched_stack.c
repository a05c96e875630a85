/* SPDX-License-Identifier: MIT */
/*
 * watched-stack [PAGES]: the signal stack has a fixed address (linked without PIE). Prints where a
 * handler's frame begins there; or touches pages.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static char stack[1 << 16];

static void on_trap(int signo)
{
	(void)signo;
	printf("%p\n", __builtin_frame_address(0));
}

int main(int argc, char **argv)
{
	const stack_t own = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction action = {.sa_handler = on_trap, .sa_flags = SA_ONSTACK};
	long pages = argc > 1 ? atol(argv[1]) : 0;
	char *memory;

	sigaltstack(&own, NULL);
	if (pages == 0) {
		sigaction(SIGTRAP, &action, NULL);
		return raise(SIGTRAP);
	}
	memory = mmap(NULL, (size_t)pages * 4096, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return 1;
	madvise(memory, (size_t)pages * 4096, MADV_NOHUGEPAGE);
	for (long page = 0; page < pages; page++)
		memory[page * 4096] = 1;
	puts("done");
	return 0;
}
