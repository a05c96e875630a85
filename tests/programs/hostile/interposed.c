/* SPDX-License-Identifier: MIT */
/*
 * A preload that ends the program with status 99 where memory is taken or given back, a lock is
 * taken, or something is written while a tick is handled: there signal 33 or SIGTRAP is blocked and
 * SIGSEGV is not, as nowhere else.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(signo) (1ull << ((signo)-1))
#define EXPORT	   __attribute__((visibility("default")))

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

static void check(void)
{
	uint64_t mask = 0;

	syscall(SYS_rt_sigprocmask, 0, NULL, &mask, sizeof(mask));
	if ((mask & (BIT(33) | BIT(5))) && !(mask & BIT(11)))
		_exit(99);
}

EXPORT void *malloc(size_t bytes)
{
	check();
	return __libc_malloc(bytes);
}

EXPORT void *calloc(size_t number, size_t bytes)
{
	check();
	return __libc_calloc(number, bytes);
}

EXPORT void *realloc(void *old, size_t bytes)
{
	check();
	return __libc_realloc(old, bytes);
}

EXPORT void free(void *pointer)
{
	check();
	__libc_free(pointer);
}

EXPORT void *mmap(void *at, size_t bytes, int access, int flags, int fd, off_t offset)
{
	check();
	return (void *)syscall(SYS_mmap, at, bytes, access, flags, fd, offset);
}

EXPORT int munmap(void *at, size_t bytes)
{
	check();
	return (int)syscall(SYS_munmap, at, bytes);
}

EXPORT ssize_t write(int fd, const void *bytes, size_t length)
{
	check();
	return syscall(SYS_write, fd, bytes, length);
}

EXPORT int vsnprintf(char *to, size_t room, const char *format, va_list arguments)
{
	static int (*next)(char *, size_t, const char *, va_list);

	check();
	if (next == NULL)
		next = (int (*)(char *, size_t, const char *, va_list))(uintptr_t)dlsym(
			RTLD_NEXT, "vsnprintf");
	return next(to, room, format, arguments);
}

EXPORT int snprintf(char *to, size_t room, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(to, room, format, arguments);
	va_end(arguments);
	return length;
}

EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	static int (*next)(pthread_mutex_t *);

	check();
	if (next == NULL)
		next = (int (*)(pthread_mutex_t *))(uintptr_t)dlsym(RTLD_NEXT,
								    "pthread_mutex_lock");
	return next(mutex);
}
