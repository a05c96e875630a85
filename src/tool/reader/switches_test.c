/* SPDX-License-Identifier: MIT */
/*
 * Is what was read from a standing thread whole? A child's threads each fill a page with one
 * number, sleep for up to 60 us, and go on with the next number: a page with two numbers in it was
 * read while its thread ran. PATHPROF_TORN_LOOKS is how many readings are to be kept (bench).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/load.h"
#include "tool/reader/switches.h"

#define NR_THREADS   6
#define WORDS	     512 /* of a page */
#define SLEEP_NS_MAX 60000
#define LOOKS	     20000
#define ROUNDS_MAX   20000000

static volatile uint64_t pages[NR_THREADS][WORDS] __attribute__((aligned(4096)));

struct shared {
	_Atomic uint32_t go;
	_Atomic uint32_t tids[NR_THREADS];
};

static struct shared *shared;

static void *fill_and_sleep(void *argument)
{
	size_t index = (size_t)argument;
	uint32_t random = (uint32_t)index + 1;

	atomic_store(&shared->tids[index], (uint32_t)syscall(SYS_gettid));
	for (uint64_t number = 1;; number++) {
		struct timespec rest = {0};

		for (size_t i = 0; i < WORDS; i++)
			pages[index][i] = number;
		random = random * 1103515245 + 12345;
		rest.tv_nsec = (random >> 8) % SLEEP_NS_MAX;
		nanosleep(&rest, NULL);
	}
	return NULL;
}

static _Noreturn void child(void)
{
	pthread_t threads[NR_THREADS];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!atomic_load(&shared->go))
		usleep(100);
	for (size_t i = 0; i < NR_THREADS; i++)
		pthread_create(&threads[i], NULL, fill_and_sleep, (void *)i);
	for (;;)
		pause();
}

struct counts {
	uint64_t kept, torn, rejected, rejected_torn, lapped;
};

static bool is_torn(const uint64_t page[WORDS])
{
	for (size_t i = 1; i < WORDS; i++) {
		if (page[i] != page[0])
			return true;
	}
	return false;
}

static void look(struct switches *switches, pid_t pid, size_t index, struct counts *counts)
{
	uint64_t page[WORDS];
	bool moved, torn;

	assert_true(load_remote(pid, (uintptr_t)pages[index], page, sizeof(page)));
	moved = switches_moved(switches, atomic_load(&shared->tids[index]));
	torn = is_torn(page);
	counts->kept += !moved;
	counts->torn += !moved && torn;
	counts->rejected += moved;
	counts->rejected_torn += moved && torn;
}

static void look_until(struct switches *switches, pid_t pid, uint64_t wanted, struct counts *counts)
{
	enum switch_kind last[NR_THREADS] = {SWITCH_IN};
	uint64_t last_ns[NR_THREADS] = {0};

	for (uint64_t round = 0; counts->kept < wanted && round < ROUNDS_MAX; round++) {
		const struct switch_record *records;
		bool lapped;
		size_t nr = switches_take(switches, &records, &lapped);

		counts->lapped += lapped;
		for (size_t i = 0; i < NR_THREADS; i++) {
			for (size_t k = 0; k < nr; k++) {
				if (records[k].tid != atomic_load(&shared->tids[i]) ||
				    records[k].time_ns < last_ns[i])
					continue;
				last[i] = records[k].kind;
				last_ns[i] = records[k].time_ns;
			}
			if (lapped)
				last[i] = SWITCH_IN;
			if (last[i] == SWITCH_OUT) /* one that was preempted may be half way */
				look(switches, pid, i, counts);
		}
	}
}

static void test_switches__what_is_kept_was_standing(void **state)
{
	const char *more = getenv("PATHPROF_TORN_LOOKS");
	uint64_t wanted = more ? strtoull(more, NULL, 10) : LOOKS;
	struct counts counts = {0};
	struct switches *switches;
	struct errbuf err = {0};
	pid_t pid;
	int code;

	(void)state;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	pid = fork();
	if (pid == 0)
		child();
	code = switches_open(pid, &switches, &err);
	if (code) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		print_message("%s\n", err.text);
		skip();
	}
	atomic_store(&shared->go, 1);
	look_until(switches, pid, wanted, &counts);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	switches_free(switches);
	print_message("kept %llu torn %llu rejected %llu of_these_torn %llu lapped %llu\n",
		      (unsigned long long)counts.kept, (unsigned long long)counts.torn,
		      (unsigned long long)counts.rejected, (unsigned long long)counts.rejected_torn,
		      (unsigned long long)counts.lapped);
	assert_true(counts.kept >= wanted);
	assert_int_equal(counts.torn, 0);
	assert_true(counts.rejected > 0);
}

static void test_switches__a_process_that_is_not_there(void **state)
{
	struct switches *switches = NULL;
	struct errbuf err = {0};

	(void)state;
	assert_true(switches_open(0x3fffffff, &switches, &err) < 0);
	assert_null(switches);
	assert_true(strlen(err.text) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_switches__what_is_kept_was_standing),
		cmocka_unit_test(test_switches__a_process_that_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
