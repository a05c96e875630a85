/* SPDX-License-Identifier: MIT */
/*
 * A program that is linked without Python and loads it when it runs, for itself alone, as web
 * servers' plug-ins do:
 *
 *   embeds LIBPYTHON SCRIPT
 *
 * runs SCRIPT, in a thread of its own where a third argument is given.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static void *library;
static const char *script;

static void *call(const char *name)
{
	void *function = dlsym(library, name);

	if (!function)
		fprintf(stderr, "%s\n", dlerror());
	return function;
}

static void *run(void *unused)
{
	void (*initialize)(int) = (void (*)(int))call("Py_InitializeEx");
	int (*run_string)(const char *, void *) =
		(int (*)(const char *, void *))call("PyRun_SimpleStringFlags");
	int (*finalize)(void) = (int (*)(void))call("Py_FinalizeEx");

	(void)unused;
	if (!initialize || !run_string || !finalize)
		return &library;
	initialize(1);
	return run_string(script, NULL) || finalize() ? &library : NULL;
}

/* Some work before, so that ticks meet the program without an interpreter. */
static void burn(double seconds)
{
	clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);

	while (clock() < end)
		;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	void *failed;

	burn(0.05);
	library = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!library) {
		fprintf(stderr, "%s\n", argc > 2 ? dlerror() : "two arguments");
		return 2;
	}
	script = argv[2];
	if (argc == 3)
		return run(NULL) ? 1 : 0;
	if (pthread_create(&thread, NULL, run, NULL) || pthread_join(thread, &failed))
		return 3;
	return failed ? 1 : 0;
}
