# SPDX-License-Identifier: MIT
"""How the drawn first period of a thread's events ends: exactly, wherever the recorder is meanwhile.

Each thread stores to one place a known number of times, and a breakpoint counts the stores.
"""
import os
import shutil
import subprocess

import pytest

STORES, PERIOD = 1000, 10

STORING = """
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
volatile int target __attribute__((aligned(8)));
static pthread_barrier_t all;
static int stores = %d;
static void *store(void *together)
{
	if (together) {
		pthread_barrier_wait(&all); /* armed */
		pthread_barrier_wait(&all); /* the recorder stands still */
	}
	for (int i = 0; i < stores; i++)
		target = i;
	return NULL;
}
/* Returns when all threads of our parent stand still. */
static int stop_recorder(void)
{
	char pattern[64], state = 'T';
	glob_t found = {0};
	FILE *file;

	if (kill(getppid(), SIGSTOP))
		return 1;
	sprintf(pattern, "/proc/%%d/task/*/stat", getppid());
	do {
		if (glob(pattern, 0, NULL, &found))
			return 1;
		state = 'T';
		for (size_t i = 0; i < found.gl_pathc && state == 'T'; i++) {
			file = fopen(found.gl_pathv[i], "r");
			if (!file || fscanf(file, "%%*d %%*s %%c", &state) != 1)
				return 1;
			fclose(file);
		}
		globfree(&found);
	} while (state != 'T');
	return 0;
}
/* usage: storing [THREADS [STORES]]; STORES by each while the recorder, our parent, stands still */
int main(int argc, char *argv[])
{
	pthread_t threads[300];
	int n = argc > 1 ? atoi(argv[1]) : 0, stopped = !n || argc > 2;

	if (argc > 2)
		stores = atoi(argv[2]);
	pthread_barrier_init(&all, NULL, (unsigned)n + 1);
	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, store, argc > 2 ? &all : NULL))
			return 1;
	if (argc > 2)
		pthread_barrier_wait(&all);
	if (stopped && stop_recorder())
		return 1;
	if (argc > 2)
		pthread_barrier_wait(&all);
	if (!n)
		store(NULL);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return stopped && kill(getppid(), SIGCONT);
}
""" % STORES


@pytest.fixture(name="storing")
def fixture_storing(record, report, tmp_path):
    """storing(THREADS or 0 for main, [STORES]) -> report"""
    if not shutil.which("gcc"):
        pytest.skip("SKIPPED: no compiler")
    (tmp_path / "storing.c").write_text(STORING)
    subprocess.run(["gcc", "-O1", "-no-pie", "-pthread", "-o", tmp_path / "storing",
                    tmp_path / "storing.c"], check=True)
    symbols = subprocess.run(["nm", tmp_path / "storing"], check=True, capture_output=True, text=True)
    address, = [line.split()[0] for line in symbols.stdout.splitlines()
                if line.split()[2:] == ["target"]]

    def run(*arguments, period=PERIOD):
        done, directory = record([tmp_path / "storing", *map(str, arguments)], "-e",
                                 f"mem:0x{address.lstrip('0')}/4:w", "-c", str(period))
        if done.returncode == 125 and ("no hardware" in done.stderr or "forbidden" in done.stderr):
            pytest.skip("SKIPPED: no breakpoints here")
        assert done.returncode == 0, done.stderr
        return report(directory)

    return run


def check(got, threads):
    """Each thread has its samples. Where the recorder has no turn soon enough, they stand at multiples
    of the first period, early or late; or the thread is armed late."""
    late = got["lost"].get("late_arming", 0)
    assert got["lost"]["total"] == late
    assert late or got["events"][0]["count"] == threads * STORES
    due = got["events"][0]["count"] // PERIOD
    assert abs(due - got["samples"]) <= threads


def test_first_period__of_many_threads_ends_exactly(storing):
    check(storing(40), 40)


def test_first_period__ends_exactly_where_the_recorder_has_the_same_processor(storing):
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        got = storing(20)
    finally:
        os.sched_setaffinity(0, allowed)
    check(got, 20)


def test_first_period__goes_on_without_a_loss_while_the_recorder_is_stopped(storing):
    got = storing(0)
    check(got, 1)
    assert got["lost"]["total"] == 0


def test_first_period__gives_threads_their_share_while_the_recorder_is_stopped(storing):
    """Of 256 stores each: rounded up to whole first periods they would have a tenth less."""
    threads, stores, period = 300, 256, 100
    got = storing(threads, stores, period=period)
    late = got["lost"].get("late_arming", 0)
    due = (threads - late) * stores / period
    # A thread has two samples or three, by chance: with its own draw, at most a half off each.
    assert abs(got["samples"] - due) < 5 * (threads / 4) ** 0.5
