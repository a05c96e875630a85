/* SPDX-License-Identifier: MIT */
/*
 * What a program sees of perf events in its threads: descriptors, SIGIO, the queue of signals.
 * Each case prints "key value" lines.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGES 2000

static volatile sig_atomic_t nr_sigio, sigio_code;

/* @number fresh pages: that many page faults. */
static void fault(size_t number)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	volatile char *pages = mmap(NULL, number * page, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		exit(3);
	madvise((void *)pages, number * page, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < number; i++)
		pages[i * page] = 1;
	munmap((void *)pages, number * page);
}

/* The descriptors from 3 on, as "key N N N". */
static void print_descriptors(const char *key)
{
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;

	printf("%s", key);
	while (directory && (entry = readdir(directory)) != NULL)
		if (atoi(entry->d_name) > 2 && atoi(entry->d_name) != dirfd(directory))
			printf(" %s", entry->d_name);
	printf("\n");
	fflush(stdout);
	closedir(directory);
}

static void *fault_and_return(void *argument)
{
	fault((size_t)argument);
	return NULL;
}

static void *print_of_thread(void *argument)
{
	print_descriptors("thread");
	fault(100);
	return argument;
}

static int case_descriptors(const char *self)
{
	pthread_t thread;
	pid_t child;
	int fd;

	print_descriptors("start");
	fd = open("/dev/null", O_RDONLY);
	printf("first %d\n", fd);
	close(fd);
	pthread_create(&thread, NULL, print_of_thread, NULL);
	pthread_join(thread, NULL);
	print_descriptors("after");
	child = fork();
	if (child == 0) {
		print_descriptors("child");
		_exit(0);
	}
	waitpid(child, NULL, 0);
	fault(PAGES);
	execl(self, self, "executed", NULL);
	return 4;
}

static int case_closed(void)
{
	pthread_t thread;

	fault(PAGES);
	close_range(3, ~0u, 0);
	fault(PAGES);
	/* One that has a number of ours now. */
	for (int fd = 3; fd < 1000 && open("/dev/zero", O_RDONLY) >= 0; fd++)
		;
	for (int fd = 2048; fd < 2060; fd++)
		dup2(3, fd);
	pthread_create(&thread, NULL, fault_and_return, (void *)(size_t)PAGES);
	pthread_join(thread, NULL);
	fault(PAGES);
	for (int fd = 3; fd < 100; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			return 5;
	for (int fd = 2048; fd < 2060; fd++)
		if (fcntl(3, F_GETFD) == 0 && fcntl(fd, F_GETFD) < 0 && dup2(3, fd) == fd)
			return 6;
	return 0;
}

static void on_sigio(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)context;
	nr_sigio++;
	sigio_code = info->si_code;
}

/* No room in the user's queue of signals: every overflow comes as a plain SIGIO. */
static int case_full_queue(int with_handler)
{
	struct rlimit none = {0, 0};
	struct sigaction action = {.sa_sigaction = on_sigio, .sa_flags = SA_SIGINFO}, now;

	if (with_handler)
		sigaction(SIGIO, &action, NULL);
	fault(PAGES);
	setrlimit(RLIMIT_SIGPENDING, &none);
	fault(PAGES);
	sigaction(SIGIO, NULL, &now);
	printf("handler %d\nsigio %d\n", now.sa_handler != SIG_DFL, nr_sigio > 0);
	return 0;
}

/* SIGIO is the program's own. */
static int case_sigio(const char *how)
{
	struct sigaction action = {.sa_sigaction = on_sigio, .sa_flags = SA_SIGINFO};
	int pipe_fds[2];

	if (strcmp(how, "kill") == 0) {
		raise(SIGIO);
		return 0;
	}
	if (strcmp(how, "ignore") == 0) {
		signal(SIGIO, SIG_IGN);
		raise(SIGIO);
	} else {
		sigaction(SIGIO, &action, NULL);
	}
	if (pipe(pipe_fds) < 0 || fcntl(pipe_fds[0], F_SETOWN, getpid()) < 0 ||
	    fcntl(pipe_fds[0], F_SETFL, O_ASYNC | O_NONBLOCK) < 0)
		return 3;
	for (int i = 0; i < 100; i++) {
		fault(20);
		if (write(pipe_fds[1], "x", 1) != 1)
			return 4;
	}
	printf("sigio %d\n", nr_sigio);
	return 0;
}

static long number_after(const char *key)
{
	char line[256];
	long number = -1;
	FILE *status = fopen("/proc/self/status", "r");

	while (status && fgets(line, sizeof(line), status))
		if (strncmp(line, key, strlen(key)) == 0)
			number = strtol(line + strlen(key), NULL, 10);
	if (status)
		fclose(status);
	return number;
}

/* Blocked by a raw system call, which no library can guard: what queues? */
static int case_blocked(void)
{
	uint64_t mask = 1ull << (33 - 1) | 1ull << (SIGTRAP - 1);
	long before = number_after("SigQ:");

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &mask, NULL, sizeof(mask));
	fault(20000);
	printf("queued %ld\n", number_after("SigQ:") - before);
	syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &mask, NULL, sizeof(mask));
	fault(PAGES);
	return 0;
}

static int case_threads(long number, long pages)
{
	for (long i = 0; i < number; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, fault_and_return, (void *)(size_t)pages) != 0 ||
		    pthread_join(thread, NULL) != 0)
			return 3;
	}
	return 0;
}

/* Children by fork and vfork fault, and exec a program that does. */
static int case_children(const char *self)
{
	int status;

	fault(PAGES);
	for (int i = 0; i < 20; i++) {
		pid_t child = i % 2 ? fork() : vfork();

		if (child == 0) {
			if (i % 2)
				fault(PAGES);
			execl(self, self, "faults", NULL);
			_exit(4);
		}
		if (waitpid(child, &status, 0) != child || status != 0)
			return 3;
	}
	return 0;
}

static atomic_int over;
static _Atomic uint64_t short_ns;

static uint64_t own_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void *be_busy(void *ret_ns)
{
	uint64_t start = own_ns();

	prctl(PR_SET_NAME, "busy");
	while (!atomic_load(&over))
		for (volatile int i = 0; i < 1000; i++)
			;
	*(uint64_t *)ret_ns = own_ns() - start;
	return NULL;
}

static void *be_short(void *argument)
{
	uint64_t start = own_ns(), now;

	do {
		for (volatile int i = 0; i < 1000; i++)
			;
		now = own_ns();
	} while (now - start < (uintptr_t)argument);
	atomic_fetch_add(&short_ns, now - start);
	return NULL;
}

/* @number threads of @us each beside a busy one; prints what each kind ran. */
static int case_share(long number, uintptr_t us)
{
	pthread_t busy, thread;
	uint64_t busy_ns;

	prctl(PR_SET_NAME, "main");
	pthread_create(&busy, NULL, be_busy, &busy_ns);
	for (long i = 0; i < number; i++) {
		if (pthread_create(&thread, NULL, be_short, (void *)(us * 1000)) != 0 ||
		    pthread_join(thread, NULL) != 0)
			return 3;
	}
	atomic_store(&over, 1);
	pthread_join(busy, NULL);
	printf("short %llu\nbusy %llu\n", (unsigned long long)atomic_load(&short_ns),
	       (unsigned long long)busy_ns);
	return 0;
}

static void *fault_and_exit(void *argument)
{
	fault((size_t)argument);
	exit(0);
}

/* The main thread ends; another goes on and ends the process. */
static int case_main_ends(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, fault_and_exit, (void *)(size_t)(10 * PAGES));
	pthread_exit(NULL);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	if (strcmp(name, "descriptors") == 0)
		return case_descriptors(argv[0]);
	if (strcmp(name, "executed") == 0) {
		print_descriptors("executed");
		fault(PAGES);
		return 0;
	}
	if (strcmp(name, "closed") == 0)
		return case_closed();
	if (strcmp(name, "full-queue") == 0)
		return case_full_queue(argc > 2);
	if (strcmp(name, "sigio") == 0 && argc > 2)
		return case_sigio(argv[2]);
	if (strcmp(name, "blocked") == 0)
		return case_blocked();
	if (strcmp(name, "threads") == 0 && argc > 3)
		return case_threads(atol(argv[2]), atol(argv[3]));
	if (strcmp(name, "children") == 0)
		return case_children(argv[0]);
	if (strcmp(name, "share") == 0 && argc > 3)
		return case_share(atol(argv[2]), (uintptr_t)atol(argv[3]));
	if (strcmp(name, "main-ends") == 0)
		return case_main_ends();
	fault(PAGES);
	return 0;
}
