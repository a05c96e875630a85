/* SPDX-License-Identifier: MIT */
/*
 * A preload that ends the program with status 99 where memory is allocated or a lock taken while a
 * tick is handled: there signal 33 or SIGTRAP is blocked and SIGSEGV is not, as nowhere else.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void check(void)
{
	uint64_t mask = 0;

	syscall(SYS_rt_sigprocmask, 0, NULL, &mask, sizeof(mask));
	if ((mask & (1ull << 32 | 1ull << 4)) && !(mask & 1ull << 10))
		_exit(99);
}

extern void *__libc_malloc(size_t);
extern void __libc_free(void *);

__attribute__((visibility("default"))) void *malloc(size_t bytes)
{
	check();
	return __libc_malloc(bytes);
}

__attribute__((visibility("default"))) void free(void *pointer)
{
	check();
	__libc_free(pointer);
}

__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	static int (*next)(pthread_mutex_t *);

	check();
	if (next == NULL)
		next = (int (*)(pthread_mutex_t *))(uintptr_t)dlsym(RTLD_NEXT,
								    "pthread_mutex_lock");
	return next(mutex);
}
