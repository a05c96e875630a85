/* SPDX-License-Identifier: MIT */
/*
 * Who stands, for how long, and with which stack.
 *
 * Every period, jittered, comes a glance: what the switch records say is taken in, then the threads
 * that stand and were not looked at in this wait are looked at, once a wait. When the wait ends,
 * its length is known to the nanosecond.
 *
 *   thread   ---run---|.......wait.......|--run--|.w.|--run--|.....wait....
 *   glances       |         |         |        |       |         |
 *                           look                                 look
 *
 * What a wait counts for. A wait longer than a period meets a glance, and counts for its length. A
 * shorter one, of length L, meets one with probability L / period, and then counts for L divided by
 * that: one period. So what a stack's short waits take is estimated as any clock's samples do, and
 * what long ones take is exact. Where looking at all who stand would cost more than WALL_SHARE of a
 * CPU, each look is done with a probability p, chosen so that it does not, which goes into the
 * weight in the same way:
 *
 *   P(L) = 1 - (1 - p)^k * (1 - p * f)      k whole periods and a fraction f in L
 *
 * A thread that hangs is looked at sooner or later, and then its wait counts for what it lasts.
 *
 * Where there are no switch records, /proc is polled: each thread at each glance. A wait is then as
 * long as the glances that meet it, give or take a period, and what is shorter than a period is met
 * by chance. Periods become longer where a round costs more than WALL_SHARE.
 *
 * A look is kept only if the thread has not moved since the records that said it stands: else it is
 * thrown away and counted, and the next glance tries again.
 */
#include "tool/reader/reader.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tool/reader/stack.h"
#include "tool/reader/standing.h"
#include "tool/reader/switches.h"
#include "tool/reader/wait_kind.h"

#define WALL_SHARE     0.007 /* of a CPU, at most, for glances */
#define JITTER	       0.25  /* of a period, to both sides */
#define CHANCE_LEAST   0.002
#define SMOOTHING      0.1     /* of costs and chances, for each glance */
#define LOOK_COST_NS   60000.0 /* first guess */
#define BUCKETS	       1024
#define REFUSED_IN_ROW 16 /* looks, after which a process is not readable */

struct waiter {
	struct waiter *next; /* in the bucket */
	struct wall_thread totals;
	uint64_t last_ns;  /* of its last record */
	uint64_t since_ns; /* where it stands: since when */
	bool stands, preempted;
	bool looked; /* in this wait; the rest is of that look */
	enum wait_kind kind;
	uint32_t python;
	double chance;	       /* of a look, then */
	uint64_t state;	       /* the interpreter's, as last found */
	uint64_t turns, round; /* polled: on a CPU, at the last glance; that glance */
};

struct wall {
	struct wall_order order;
	struct switches *switches; /* NULL: /proc is polled */
	uint64_t round;		   /* number of the glance */
	struct stack *stack;
	struct lock_place lock;
	uint8_t interpreter[MEMORY_CPYTHON_BYTES]; /* as it was last told */
	struct waiter *buckets[BUCKETS];
	uint64_t begin_ns;	 /* waits count from here */
	uint64_t due_ns;	 /* when the glance at hand was to be */
	uint64_t glanced_ns;	 /* when the last glance was */
	double interval_ns;	 /* between glances, as they come */
	double chance;		 /* of a look at a glance */
	double take_ns, look_ns; /* CPU time of a glance without looks, of one look */
	double looks;		 /* of a glance */
	uint64_t cpu_ns;	 /* the thread's CPU clock at the end of the last glance */
	uint64_t random;
	uint64_t refusals, refused_in_row;
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* xorshift64, as a number from 0 to below 1 */
static double draw(struct wall *wall)
{
	wall->random ^= wall->random << 13;
	wall->random ^= wall->random >> 7;
	wall->random ^= wall->random << 17;
	return (double)(wall->random >> 11) / 9007199254740992.0;
}

static void smooth(double *value, double sample)
{
	*value += SMOOTHING * (sample - *value);
}

/* ---- threads ---- */

static struct waiter **place_of(struct wall *wall, uint32_t tid)
{
	struct waiter **place = &wall->buckets[tid % BUCKETS];

	while (*place && (*place)->totals.tid != tid)
		place = &(*place)->next;
	return place;
}

/* The thread, made where it is new; NULL: out of memory. */
static struct waiter *waiter_of(struct wall *wall, uint32_t tid)
{
	struct waiter **place = place_of(wall, tid);

	if (!*place) {
		*place = calloc(1, sizeof(**place));
		if (*place)
			(*place)->totals.tid = tid;
	}
	return *place;
}

static void forget(struct wall *wall, uint32_t tid)
{
	struct waiter **place = place_of(wall, tid), *waiter = *place;

	if (!waiter)
		return;
	*place = waiter->next;
	free(waiter);
}

/* ---- waits ---- */

/* How likely a wait of this length meets a glance that looks. */
static double chance_of(const struct wall *wall, double chance, uint64_t length_ns)
{
	double periods = (double)length_ns / wall->interval_ns, low = 1 - JITTER, high = 1 + JITTER;
	double whole = floor(periods);

	if (periods <= low)
		return chance * periods;
	if (periods < high) /* the mean of min(interval, length), intervals being even in it */
		return chance * ((periods * periods - low * low) / 2 + periods * (high - periods)) /
		       (high - low);
	return 1 - pow(1 - chance, whole) * (1 - chance * (periods - whole));
}

static void end_wait(struct wall *wall, struct waiter *waiter, uint64_t now_ns)
{
	uint64_t start = waiter->since_ns > wall->begin_ns ? waiter->since_ns : wall->begin_ns;
	struct wall_wait wait = {.tid = waiter->totals.tid,
				 .python = waiter->python,
				 .kind = waiter->kind,
				 .start_ns = start};
	double chance;

	waiter->stands = false;
	if (now_ns <= start)
		return;
	wait.duration_ns = now_ns - start;
	waiter->totals.waits++;
	waiter->totals.waited_ns += wait.duration_ns;
	if (!waiter->looked)
		return;
	chance = wall->switches ? chance_of(wall, waiter->chance, wait.duration_ns) : 1;
	wait.count = (uint64_t)((double)wait.duration_ns / (chance > 1e-6 ? chance : 1e-6));
	waiter->totals.seen++;
	waiter->totals.seen_ns += wait.duration_ns;
	wall->order.wait(wall->order.user, &wait);
}

static void begin_wait(struct waiter *waiter, uint64_t now_ns, bool preempted)
{
	waiter->stands = true;
	waiter->preempted = preempted;
	waiter->looked = false;
	waiter->since_ns = now_ns;
}

static void give_out(struct wall *wall, const struct waiter *waiter)
{
	if (waiter->totals.waits || waiter->totals.rejected)
		wall->order.thread(wall->order.user, &waiter->totals);
}

static void apply(struct wall *wall, const struct switch_record *record)
{
	struct waiter *waiter = waiter_of(wall, record->tid);

	/* The rings are taken one after the other: an older record may come behind a newer one. */
	if (!waiter || record->time_ns < waiter->last_ns)
		return;
	waiter->last_ns = record->time_ns;
	if (waiter->stands && (record->kind == SWITCH_IN || record->kind == SWITCH_EXIT))
		end_wait(wall, waiter, record->time_ns);
	if (record->kind == SWITCH_EXIT) {
		give_out(wall, waiter);
		forget(wall, record->tid);
	} else if (record->kind != SWITCH_IN && !waiter->stands) {
		begin_wait(waiter, record->time_ns, record->kind != SWITCH_OUT);
	}
}

/* Records were overwritten: nobody is known to stand until the next record says so. */
static void mistrust(struct wall *wall, const struct switch_record *records, size_t nr_records)
{
	uint64_t oldest = nr_records ? records[0].time_ns : UINT64_MAX;

	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct waiter *waiter = wall->buckets[i]; waiter; waiter = waiter->next) {
			if (!waiter->stands)
				continue;
			end_wait(wall, waiter,
				 waiter->since_ns < wall->glanced_ns ? wall->glanced_ns
								     : waiter->since_ns);
			if (waiter->last_ns < oldest)
				waiter->last_ns = wall->glanced_ns;
		}
	}
}

static void take_records(struct wall *wall)
{
	const struct switch_record *records;
	bool lapped;
	size_t number = switches_take(wall->switches, &records, &lapped);

	if (lapped)
		mistrust(wall, records, number);
	for (size_t i = 0; i < number; i++)
		apply(wall, &records[i]);
}

/* ---- looks ---- */

/* Which interpreter there is, once its agent has said so; another one after an exec. */
static void find_interpreter(struct wall *wall)
{
	struct memory_interpreter *interpreter = &wall->order.memory->header->interpreter;

	if (!atomic_load_explicit(&interpreter->known, memory_order_acquire) ||
	    !memcmp(wall->interpreter, interpreter->cpython, MEMORY_CPYTHON_BYTES))
		return;
	memcpy(wall->interpreter, interpreter->cpython, MEMORY_CPYTHON_BYTES);
	stack_interpreter(wall->stack, interpreter);
	wall->lock = (struct lock_place){wall->stack->cpython.runtime, interpreter->runtime_bytes};
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct waiter *waiter = wall->buckets[i]; waiter; waiter = waiter->next)
			waiter->state = 0;
}

static enum wait_kind kind_of(struct wall *wall, const struct waiter *waiter)
{
	enum stance stance;
	uint64_t futex;

	if (waiter->preempted)
		return WAIT_RUNNABLE;
	stance = wait_kind_read(wall->order.pid, waiter->totals.tid, &wall->lock, &futex);
	if (stance == STANCE_RUNS) /* woken, and has no CPU yet */
		return WAIT_RUNNABLE;
	if (!waiter->state)
		return WAIT_OTHER;
	if (stance == STANCE_LOCK)
		return WAIT_LOCK;
	return futex && stack_waits_for_lock(wall->stack, waiter->state, futex) ? WAIT_LOCK
										: WAIT_OTHER;
}

static void refuse(struct wall *wall, struct waiter *waiter)
{
	waiter->totals.rejected++;
	wall->refusals++;
	wall->refused_in_row++;
}

/* Did it run since the glance began? */
static bool moved(struct wall *wall, const struct waiter *waiter)
{
	struct standing standing;

	if (wall->switches)
		return switches_moved(wall->switches, waiter->totals.tid);
	return !standing_read(wall->order.pid, waiter->totals.tid, &wall->lock, &standing) ||
	       standing.turns != waiter->turns || standing.stance == STANCE_RUNS;
}

static void look(struct wall *wall, struct waiter *waiter)
{
	enum wait_kind kind;
	uint32_t node;
	int code = stack_read(wall->stack, wall->order.memory, waiter->totals.tid, &waiter->state);

	if (code) {
		refuse(wall, waiter);
		return;
	}
	kind = kind_of(wall, waiter);
	if (moved(wall, waiter)) {
		waiter->totals.rejected++;
		return;
	}
	wall->refused_in_row = 0;
	if (stack_intern(wall->stack, wall->order.memory, &node)) {
		waiter->totals.rejected++;
		return;
	}
	waiter->looked = true;
	waiter->python = node;
	waiter->kind = kind;
	waiter->chance = wall->chance;
}

/*
 * A glance is of the moment at which it was due. What began since then may be its own doing: who
 * wakes may take the CPU from the very thread that it looks at.
 */
static bool is_candidate(const struct wall *wall, const struct waiter *waiter)
{
	return waiter->stands && !waiter->looked && waiter->since_ns < wall->due_ns;
}

static size_t nr_standing(const struct wall *wall)
{
	size_t number = 0;

	for (size_t i = 0; i < BUCKETS; i++)
		for (const struct waiter *waiter = wall->buckets[i]; waiter; waiter = waiter->next)
			number += is_candidate(wall, waiter);
	return number;
}

/* Down at once, up slowly: a weight tells with which one its look was made. */
static void choose_chance(struct wall *wall, size_t nr_candidates)
{
	double budget = WALL_SHARE * wall->interval_ns - wall->take_ns;
	double looks = budget > 0 ? budget / wall->look_ns : 0, chance = 1;

	if (looks < 1)
		looks = 1; /* glances become rarer instead: wall_glance() */
	if ((double)nr_candidates > looks)
		chance = looks / (double)nr_candidates;
	if (chance < wall->chance)
		wall->chance = chance;
	else
		smooth(&wall->chance, chance);
	if (wall->chance < CHANCE_LEAST)
		wall->chance = CHANCE_LEAST;
}

static size_t look_around(struct wall *wall)
{
	size_t looks = 0;

	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct waiter *waiter = wall->buckets[i]; waiter; waiter = waiter->next) {
			if (!is_candidate(wall, waiter) || draw(wall) >= wall->chance)
				continue;
			look(wall, waiter);
			looks++;
		}
	}
	return looks;
}

/* When the next glance is due: in a period, or what glances need that cost so much. */
static uint64_t next_glance(struct wall *wall, double cost_ns)
{
	double interval = fmax((double)wall->order.period_ns, cost_ns / WALL_SHARE);

	interval *= 1 + JITTER * (2 * draw(wall) - 1);
	wall->due_ns = clock_ns(CLOCK_MONOTONIC) + (uint64_t)interval;
	return wall->due_ns;
}

/* ---- polling ---- */

static void poll_thread(void *user, uint32_t tid)
{
	struct wall *wall = user;
	struct waiter *waiter = waiter_of(wall, tid);
	/* Waits begin and end somewhere between two glances. */
	uint64_t now = clock_ns(CLOCK_MONOTONIC), between = now - (now - wall->glanced_ns) / 2;
	struct standing standing;
	bool goes_on;

	if (!waiter || !standing_read(wall->order.pid, tid, &wall->lock, &standing))
		return;
	waiter->round = wall->round;
	goes_on = waiter->stands && waiter->turns == standing.turns;
	if (waiter->stands && !goes_on)
		end_wait(wall, waiter, between);
	waiter->turns = standing.turns;
	if (standing.stance != STANCE_LOCK && standing.stance != STANCE_WAITS)
		return;
	if (!goes_on)
		begin_wait(waiter, wall->glanced_ns ? between : now, false);
	if (!waiter->looked)
		look(wall, waiter);
}

static void forget_ended(struct wall *wall)
{
	for (size_t i = 0; i < BUCKETS; i++) {
		struct waiter **place = &wall->buckets[i];

		while (*place) {
			struct waiter *waiter = *place;

			if (waiter->round == wall->round) {
				place = &waiter->next;
				continue;
			}
			if (waiter->stands)
				end_wait(wall, waiter, wall->glanced_ns);
			give_out(wall, waiter);
			*place = waiter->next;
			free(waiter);
		}
	}
}

static uint64_t poll_glance(struct wall *wall)
{
	uint64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID), now = clock_ns(CLOCK_MONOTONIC);

	if (!wall->begin_ns)
		return next_glance(wall, 0);
	wall->round++;
	find_interpreter(wall);
	standing_threads(wall->order.pid, poll_thread, wall);
	forget_ended(wall);
	wall->glanced_ns = now;
	smooth(&wall->take_ns, (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu));
	return next_glance(wall, wall->take_ns);
}

/* Costs are taken from the end of the last glance on: waking and waiting are of them. */
uint64_t wall_glance(struct wall *wall)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), cpu;
	size_t looks;

	if (!wall->switches)
		return poll_glance(wall);
	if (wall->glanced_ns)
		smooth(&wall->interval_ns, (double)(now - wall->glanced_ns));
	take_records(wall);
	wall->glanced_ns = now;
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (wall->cpu_ns)
		smooth(&wall->take_ns, (double)(cpu - wall->cpu_ns));
	wall->cpu_ns = cpu;
	if (!wall->begin_ns)
		return next_glance(wall, 0);
	find_interpreter(wall);
	choose_chance(wall, nr_standing(wall));
	looks = look_around(wall);
	wall->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (looks)
		smooth(&wall->look_ns, (double)(wall->cpu_ns - cpu) / (double)looks);
	smooth(&wall->looks, (double)looks);
	/* At most half of the share is for coming by; many threads, rarer glances. Not by what was
	 * looked at just now: how soon a wait meets a glance must not depend on the one before. */
	return next_glance(wall, wall->take_ns + fmax(wall->take_ns, wall->look_ns * wall->looks));
}

/* ---- life ---- */

int wall_new(const struct wall_order *order, struct wall **ret_wall, struct errbuf *said)
{
	struct wall *wall = calloc(1, sizeof(*wall));
	int code;

	if (!wall)
		return errbuf_set(said, -ENOMEM, "out of memory");
	wall->order = *order;
	wall->interval_ns = (double)order->period_ns;
	wall->chance = 1;
	wall->look_ns = LOOK_COST_NS;
	wall->random = clock_ns(CLOCK_MONOTONIC) | 1;
	wall->stack = stack_new(order->pid);
	if (!wall->stack) {
		wall_free(wall);
		return errbuf_set(said, -ENOMEM, "out of memory");
	}
	code = switches_open(order->pid, &wall->switches, said);
	if (code)
		errbuf_prepend(
			said, code,
			"Waiting threads are seen by polling /proc, so that waits are known to "
			"a period and short ones by chance");
	*ret_wall = wall;
	return 0;
}

void wall_free(struct wall *wall)
{
	if (!wall)
		return;
	for (size_t i = 0; i < BUCKETS; i++) {
		while (wall->buckets[i])
			forget(wall, wall->buckets[i]->totals.tid);
	}
	switches_free(wall->switches);
	stack_free(wall->stack);
	free(wall);
}

void wall_begin(struct wall *wall, uint64_t now_ns)
{
	wall->begin_ns = now_ns;
}

void wall_finish(struct wall *wall, uint64_t now_ns)
{
	if (!wall->begin_ns)
		return;
	if (wall->switches)
		take_records(wall);
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct waiter *waiter = wall->buckets[i]; waiter; waiter = waiter->next) {
			if (waiter->stands)
				end_wait(wall, waiter, now_ns);
			give_out(wall, waiter);
		}
	}
	wall->begin_ns = 0;
}

uint64_t wall_refusals(const struct wall *wall)
{
	return wall->refused_in_row >= REFUSED_IN_ROW ? wall->refusals : 0;
}
