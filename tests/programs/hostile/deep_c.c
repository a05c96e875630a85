/* SPDX-License-Identifier: MIT */
/* For ctypes: a C stack without end, and a thread that never runs Python. */
#include <pthread.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int endless(int depth);
EXPORT int foreign_thread(int milliseconds);

EXPORT int endless(int depth)
{
	volatile char room[4096];

	room[0] = (char)depth;
	room[sizeof(room) - 1] = (char)depth;
	return depth < 0 ? 0 : endless(depth + 1) + room[0];
}

static void *spin(void *milliseconds)
{
	struct timespec start, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 <
	       *(int *)milliseconds);
	return NULL;
}

EXPORT int foreign_thread(int milliseconds)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, spin, &milliseconds) != 0)
		return 1;
	return pthread_join(thread, NULL);
}
