/* SPDX-License-Identifier: MIT */
/*
 * longjmp PAGES: page faults, while an alarm every 150 us is left by siglongjmp(), with whatever
 * it ran over.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>

#define BLOCK (256 * 4096)

static sigjmp_buf back;
static volatile sig_atomic_t jumps;

static void on_alarm(int signo)
{
	(void)signo;
	jumps++;
	siglongjmp(back, 1);
}

int main(int argc, char **argv)
{
	const struct itimerval often = {{0, 150}, {0, 150}}, never = {{0, 0}, {0, 0}};
	long pages = argc > 1 ? atol(argv[1]) : 1;
	static volatile long touched;
	char *block = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (block == MAP_FAILED)
		return 1;
	madvise(block, BLOCK, MADV_NOHUGEPAGE);
	signal(SIGALRM, on_alarm);
	sigsetjmp(back, 1);
	setitimer(ITIMER_REAL, &often, NULL);
	while (touched < pages) {
		madvise(block, BLOCK, MADV_DONTNEED);
		for (long at = 0; at < BLOCK; at += 4096) {
			*(volatile char *)(block + at) = 1;
			touched++;
		}
	}
	setitimer(ITIMER_REAL, &never, NULL);
	printf("%s\n", jumps > 10 ? "jumped" : "too few jumps");
	return 0;
}
