/* SPDX-License-Identifier: MIT */
/* Failing calls, a million of them, each with its own errno: none may change under ticks. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	long wrong = 0;

	for (int i = 0; i < 1000000; i++) {
		if (close(-1) != -1 || errno != EBADF)
			wrong++;
		errno = 1234;
		for (volatile int j = 0; j < 100; j++)
			;
		if (errno != 1234)
			wrong++;
	}
	printf("wrong %ld\n", wrong);
	return wrong != 0;
}
