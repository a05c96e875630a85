/* SPDX-License-Identifier: MIT */
/*
 * The ends of threads and of the process; threads and children that nobody announced.
 *
 * CPU time. A thread's slot has its exact CPU time where the thread came to its end; the leader's
 * stays readable in /proc while it is a zombie; what _exit or a kill cut off is not known. What
 * the process's CPU clock has beyond the known threads was spent where nothing is sampled: in
 * threads made by raw clone, in late parts of exits. The leader keeps its clock over an exec, so
 * each image's record takes only what the former ones left.
 *
 * Names. A thread that comes to its end leaves its name in its slot; of others, which a kill or
 * _exit ends, that is known which /proc had when it was last looked at.
 *
 * /proc is looked at every POLL_NS. One look does not make a foreign thread: it may be one that is
 * being made or is ending.
 */
#include "tool/recorder/recorder_types.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NAMES_A_POLL	  128	      /* threads whose names are read: about a millisecond */
#define CHILD_LISTS_MAX	  16	      /* threads whose children are looked for */
#define UNSEEN_WORTH_NOTE 10000000ull /* and a hundredth of all; below it: ends of threads */

/* A small file of /proc, terminated. Returns its length or 0. */
static size_t read_proc(char *to, size_t room, const char *format, uint32_t pid, uint32_t tid)
{
	char path[64];
	ssize_t length;
	int fd;

	to[0] = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(path, sizeof(path), format, pid, tid);
#pragma GCC diagnostic pop
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	length = read(fd, to, room - 1);
	close(fd);
	to[length > 0 ? length : 0] = 0;
	return length > 0 ? (size_t)length : 0;
}

/* CPU time of a thread that lives or is a zombie; 0: not known. */
static uint64_t proc_cpu_ns(uint32_t pid, uint32_t tid)
{
	char text[64];

	return read_proc(text, sizeof(text), "/proc/%u/task/%u/schedstat", pid, tid)
		       ? strtoull(text, NULL, 10)
		       : 0;
}

static uint64_t proc_switches(uint32_t pid, uint32_t tid)
{
	static const char key[] = "\nvoluntary_ctxt_switches:";
	char text[4096];
	const char *at;

	read_proc(text, sizeof(text), "/proc/%u/task/%u/status", pid, tid);
	at = strstr(text, key);
	return at ? strtoull(at + sizeof(key) - 1, NULL, 10) : 0;
}

/* What the leader ran since its last record. */
static uint64_t leader_share(struct recorder *recorder, uint64_t cpu_ns)
{
	uint64_t before = recorder->totals.leader_cpu_ns;

	if (cpu_ns <= before)
		return 0;
	recorder->totals.leader_cpu_ns = cpu_ns;
	return cpu_ns - before;
}

static uint64_t settle_cpu(struct recorder *recorder, const struct slot *slot)
{
	uint64_t cpu_ns = slot->cpu_ns;

	if (slot->tid == (uint32_t)recorder->root_pid) {
		if (!cpu_ns)
			cpu_ns = proc_cpu_ns(slot->pid, slot->tid);
		cpu_ns = leader_share(recorder, cpu_ns);
	} else if (!cpu_ns) {
		recorder->totals.unknown_threads++;
	}
	recorder->totals.known_cpu_ns += cpu_ns;
	return cpu_ns;
}

static void add_losses(struct totals *totals, const struct slot *slot)
{
	totals->handler_ns += atomic_load(&slot->handler_ns);
	totals->left_out += atomic_load(&slot->left_out);
	for (unsigned int i = 0; i < NR_LOSS_REASONS; i++)
		totals->lost[i] += atomic_load(&slot->lost[i]);
	/* Not in the packets' discarded counts: a CPU timer merges ticks in any program that waits.
	 */
	totals->lost[LOSS_MERGED] += atomic_load(&slot->overrun);
	for (unsigned int i = 0; i < NR_DEGRADED_REASONS; i++)
		totals->degraded[i] += atomic_load(&slot->degraded[i]);
}

static void add_counts(struct recorder *recorder, const struct slot *slot, uint64_t cpu_ns)
{
	struct totals *totals = &recorder->totals;

	/* The leader has a record in each image; it is one thread. */
	if (slot->tid != (uint32_t)recorder->root_pid || !totals->leader_counted)
		totals->nr_threads++;
	totals->leader_counted |= slot->tid == (uint32_t)recorder->root_pid;
	add_losses(totals, slot);
	for (size_t i = 0; i < recorder->request->nr_events; i++) {
		const struct event_choice *event = &recorder->request->events[i];
		uint64_t weight = atomic_load(&slot->weight[i]);

		if (event->trigger == TRIGGER_CPU_TIMER)
			totals->event_count[i] += cpu_ns ? cpu_ns : weight;
		else if (event->trigger == TRIGGER_MANUAL)
			totals->event_count[i] += weight;
	}
}

static void read_name(char *to, size_t room, uint32_t pid, uint32_t tid)
{
	read_proc(to, room, "/proc/%u/task/%u/comm", pid, tid);
	to[strcspn(to, "\n")] = 0;
}

/* The name of a thread that lives; nothing changes where it has just ended. */
static void see_name(struct recorder *recorder, uint32_t index)
{
	const struct slot *slot = &recorder->memory.slots[index];
	struct shadow *shadow = &recorder->shadows[index];
	uint32_t generation = slot->generation;
	char name[sizeof(shadow->name)];

	if (atomic_load_explicit(&slot->state, memory_order_acquire) != SLOT_ACTIVE)
		return;
	read_name(name, sizeof(name), slot->pid, slot->tid);
	if (!name[0])
		return;
	memcpy(shadow->name, name, sizeof(name));
	shadow->named = generation;
}

/* Of many threads some, in turn. */
static void see_names(struct recorder *recorder)
{
	uint32_t number = recorder->slots_seen < NAMES_A_POLL ? recorder->slots_seen : NAMES_A_POLL;

	for (uint32_t i = 0; i < number; i++) {
		if (recorder->names_next >= recorder->slots_seen)
			recorder->names_next = 0;
		see_name(recorder, recorder->names_next++);
	}
}

/* What it was called, of a slot whose thread has ended. */
static void find_name(const struct recorder *recorder, const struct slot *slot, char *to,
		      size_t room)
{
	const struct shadow *shadow = &recorder->shadows[slot_index(&recorder->memory, slot)];

	snprintf(to, room, "%.*s", (int)sizeof(slot->name), slot->name);
	if (!to[0])
		read_name(to, room, slot->pid, slot->tid);
	if (!to[0] && shadow->named == slot->generation)
		snprintf(to, room, "%s", shadow->name);
	to[strcspn(to, "\n")] = 0;
}

void threads_ended(struct recorder *recorder, struct slot *slot)
{
	struct thread_record record = {
		.slot = slot_index(&recorder->memory, slot),
		.pid = slot->pid,
		.tid = slot->tid,
		.start_ns = slot->start_ns,
		.end_ns = slot->end_ns,
		.cpu_ns = settle_cpu(recorder, slot),
		.overrun = atomic_load(&slot->overrun),
		.voluntary_switches = slot->voluntary_switches,
	};
	char name[sizeof(slot->name) + 1];

	find_name(recorder, slot, name, sizeof(name));
	record.name = name;
	if (!record.voluntary_switches && slot->tid == (uint32_t)recorder->root_pid)
		record.voluntary_switches = proc_switches(slot->pid, slot->tid);
	for (unsigned int i = 0; i < EVENTS_MAX; i++)
		record.samples += atomic_load(&slot->samples[i]);
	for (unsigned int i = 0; i < NR_LOSS_REASONS; i++)
		record.lost += atomic_load(&slot->lost[i]);
	add_counts(recorder, slot, record.cpu_ns);
	(void)definitions_put_thread(&recorder->definitions, &record); /* dropped: counted there */
}

void threads_count_living(struct recorder *recorder)
{
	const struct memory_header *header = recorder->memory.header;

	for (uint32_t i = 0; i < recorder->slots_seen; i++) {
		const struct slot *slot = &recorder->memory.slots[i];

		if (atomic_load_explicit(&slot->state, memory_order_acquire) == SLOT_ACTIVE)
			add_losses(&recorder->totals, slot);
	}
	for (unsigned int i = 0; i < NR_LOSS_REASONS; i++)
		recorder->totals.lost[i] += atomic_load(&header->lost[i]);
}

static bool has_slot(const struct recorder *recorder, uint32_t tid)
{
	for (uint32_t i = 0; i < recorder->slots_seen; i++) {
		const struct slot *slot = &recorder->memory.slots[i];

		if (atomic_load_explicit(&slot->state, memory_order_acquire) != SLOT_FREE &&
		    slot->tid == tid)
			return true;
	}
	return false;
}

static void see_thread(struct recorder *recorder, uint32_t tid, uint64_t now)
{
	uint32_t pid = (uint32_t)recorder->root_pid;
	struct foreign_thread *thread;
	unsigned int i = 0;

	if (tid == pid || has_slot(recorder, tid))
		return;
	while (i < recorder->nr_foreign && recorder->foreign[i].tid != tid)
		i++;
	if (i == FOREIGN_MAX)
		return;
	thread = &recorder->foreign[i];
	if (i == recorder->nr_foreign) {
		*thread = (struct foreign_thread){.tid = tid, .first_ns = now};
		recorder->nr_foreign++;
	}
	thread->looks++;
	thread->last_ns = now;
	thread->cpu_ns = proc_cpu_ns(pid, tid);
	read_name(thread->name, sizeof(thread->name), pid, tid);
}

static void see_child(struct recorder *recorder, uint32_t pid, uint64_t now)
{
	struct child *child = &recorder->children[recorder->nr_children];
	size_t length;

	for (unsigned int i = 0; i < recorder->nr_children; i++) {
		if (recorder->children[i].pid == pid)
			return;
	}
	if (recorder->nr_children == CHILDREN_MAX)
		return;
	length = read_proc(child->command, sizeof(child->command), "/proc/%u/cmdline", pid, 0);
	if (!length)
		return; /* gone, or a zombie */
	for (size_t i = 0; i + 1 < length; i++) {
		if (!child->command[i])
			child->command[i] = ' ';
	}
	child->pid = pid;
	child->first_ns = now;
	recorder->nr_children++;
}

static void see_children(struct recorder *recorder, uint32_t tid, uint64_t now)
{
	char text[2048], *at = text, *end;

	read_proc(text, sizeof(text), "/proc/%u/task/%u/children", (uint32_t)recorder->root_pid,
		  tid);
	for (;;) {
		unsigned long pid = strtoul(at, &end, 10);

		if (end == at || *end != ' ')
			return; /* the end, or a number that was cut */
		see_child(recorder, (uint32_t)pid, now);
		at = end;
	}
}

void threads_poll(struct recorder *recorder)
{
	uint64_t now = now_ns();
	unsigned int looked = 0;
	struct dirent *entry;
	char path[64];
	DIR *tasks;

	if (!recorder->agent_came)
		return;
	see_names(recorder);
	snprintf(path, sizeof(path), "/proc/%d/task", recorder->root_pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);

		if (!tid)
			continue;
		see_thread(recorder, tid, now);
		if (looked++ < CHILD_LISTS_MAX)
			see_children(recorder, tid, now);
	}
	if (tasks)
		closedir(tasks);
}

/* Threads without a slot: their records, numbered SLOT_NONE. Returns how many. */
static unsigned int put_foreign(struct recorder *recorder)
{
	unsigned int number = 0;

	for (unsigned int i = 0; i < recorder->nr_foreign; i++) {
		const struct foreign_thread *thread = &recorder->foreign[i];
		struct thread_record record = {.slot = SLOT_NONE,
					       .pid = (uint32_t)recorder->root_pid,
					       .tid = thread->tid,
					       .start_ns = thread->first_ns,
					       .end_ns = thread->last_ns,
					       .cpu_ns = thread->cpu_ns,
					       .name = thread->name};

		if (thread->looks < 2)
			continue;
		definitions_put_thread(&recorder->definitions, &record);
		number++;
	}
	if (number)
		note(recorder,
		     "%u thread%s listed, but not sampled: %smade in a way that pathprof does not "
		     "see "
		     "(raw clone, helpers of libc)",
		     number, number == 1 ? " is" : "s are",
		     atomic_load(&recorder->memory.header->lost[LOSS_NO_SLOT])
			     ? "more than there are slots, or "
			     : "");
	return number;
}

static const char *reason_for(enum process_how how)
{
	switch (how) {
	case PROCESS_FORKED:
		return "forked by the program: only the program's own process is recorded";
	case PROCESS_EXECED:
		return "started by the program: only the program's own process is recorded";
	default:
		return "spawned by the program: only the program's own process is recorded";
	}
}

/* A child that execs was listed at its fork as well: the last entry says most. */
static bool listed_later(const struct memory *memory, uint32_t number, uint32_t at)
{
	for (uint32_t i = at + 1; i < number; i++) {
		if (memory->processes[i].pid == memory->processes[at].pid &&
		    atomic_load_explicit(&memory->processes[i].committed, memory_order_acquire))
			return true;
	}
	return false;
}

static uint32_t nr_listed(const struct recorder *recorder)
{
	const struct memory_header *header = recorder->memory.header;
	uint32_t number = atomic_load(&header->processes_used);

	return number < header->sizes.nr_processes ? number : header->sizes.nr_processes;
}

static bool announced(const struct recorder *recorder, uint32_t pid)
{
	uint32_t number = nr_listed(recorder);

	for (uint32_t i = 0; i < number; i++) {
		if (recorder->memory.processes[i].pid == pid)
			return true;
	}
	return false;
}

static void put_processes(struct recorder *recorder)
{
	const struct memory *memory = &recorder->memory;
	uint32_t number = nr_listed(recorder);

	for (uint32_t i = 0; i < number; i++) {
		const struct process *process = &memory->processes[i];
		char command[sizeof(process->command) + 1] = "";
		struct process_record record = {.pid = process->pid,
						.ppid = process->ppid,
						.start_ns = process->start_ns,
						.command = command,
						.reason = reason_for(process->how)};

		if (!atomic_load_explicit(&process->committed, memory_order_acquire) ||
		    (process->pid && listed_later(memory, number, i)))
			continue;
		memcpy(command, process->command, sizeof(process->command));
		definitions_put_process(&recorder->definitions, &record);
	}
	for (unsigned int i = 0; i < recorder->nr_children; i++) {
		const struct child *child = &recorder->children[i];
		struct process_record record = {.pid = child->pid,
						.ppid = (uint32_t)recorder->root_pid,
						.start_ns = child->first_ns,
						.command = child->command,
						.reason = reason_for(PROCESS_EXECED)};

		if (!announced(recorder, child->pid))
			definitions_put_process(&recorder->definitions, &record);
	}
}

void threads_list_root(struct recorder *recorder)
{
	struct process_record record = {
		.pid = (uint32_t)recorder->root_pid,
		.ppid = (uint32_t)getpid(),
		.start_ns = recorder->start_ns,
		.recorded = recorder->agent_came,
		.command = recorder->request->command[0],
		.reason = recorder->agent_came ? "" : "it did not load the agent"};

	/* One that did not load the agent may exec what does. */
	if (recorder->root_listed || (!recorder->agent_came && !recorder->end_ns))
		return;
	recorder->root_listed = true;
	definitions_put_process(&recorder->definitions, &record);
}

unsigned int threads_nr_children(const struct recorder *recorder)
{
	uint32_t number = nr_listed(recorder);
	unsigned int children = 0;

	for (uint32_t i = 0; i < number; i++) {
		if (!recorder->memory.processes[i].pid ||
		    !listed_later(&recorder->memory, number, i))
			children++;
	}
	for (unsigned int i = 0; i < recorder->nr_children; i++)
		children += !announced(recorder, recorder->children[i].pid);
	return children;
}

uint64_t threads_process_cpu_ns(const struct recorder *recorder)
{
	pid_t pid = recorder->root_pid; /* it runs, or is a zombie that nobody has reaped yet */
	struct timespec time;

	/* As clock_getcpuclockid(3) makes it, which refuses a zombie: process, CPUCLOCK_SCHED. */
	if (clock_gettime((clockid_t)(~(unsigned int)pid << 3 | 2), &time))
		return 0;
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t unseen_cpu_ns(struct recorder *recorder)
{
	uint32_t pid = (uint32_t)recorder->root_pid;
	uint64_t total = threads_process_cpu_ns(recorder), known;

	/* What the leader ran after its record: the exit itself. */
	recorder->totals.known_cpu_ns += leader_share(recorder, proc_cpu_ns(pid, pid));
	known = recorder->totals.known_cpu_ns;
	if (recorder->totals.unknown_threads) {
		note(recorder,
		     "The CPU time of %llu thread%s that ended with the process is not known "
		     "exactly",
		     (unsigned long long)recorder->totals.unknown_threads,
		     recorder->totals.unknown_threads == 1 ? "" : "s");
		return 0;
	}
	if (total <= known || total - known < UNSEEN_WORTH_NOTE || total - known < total / 100)
		return 0;
	return total - known;
}

uint64_t threads_finish(struct recorder *recorder)
{
	uint64_t unseen;

	if (!recorder->agent_came) {
		threads_list_root(recorder);
		return threads_process_cpu_ns(recorder);
	}
	unseen = unseen_cpu_ns(recorder);
	recorder->nr_foreign = put_foreign(recorder);
	threads_list_root(recorder);
	put_processes(recorder);
	return unseen;
}
