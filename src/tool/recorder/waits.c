/* SPDX-License-Identifier: MIT */
/*
 * --wall: a thread that glances at COMMAND's threads (tool/reader), and ust/waits, where what it
 * finds goes: stream class 2 of core/event/ctf.h.
 *
 * The watching begins when the agent says hello: the process has one thread then, which waits for
 * our answer, and whatever it will have is seen from its beginning. It outlives an exec.
 *
 * Events gather in one buffer; with every flush of the recorder it becomes a packet, behind the
 * definitions that it names. What a full disk does not take is dropped, and said.
 */
#include "tool/recorder/recorder_types.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/event/ctf.h"
#include "tool/reader/reader.h"

#define KEPT_BYTES (16u << 20) /* between two flushes, 5 s: some 290,000 waits */

struct waits {
	struct recorder *recorder;
	struct wall *wall;
	pthread_t thread;
	bool runs;
	pthread_mutex_t lock; /* of all below but what follows the buffer */
	pthread_cond_t stop;
	bool stops;
	uint8_t *buffer; /* events */
	size_t used, room;
	uint64_t begin_ns, last_ns; /* of the buffer's events */
	uint64_t dropped;

	uint64_t seq, file_bytes; /* of the file; the recorder's lock */
};

/* Room for an event of @bytes; its header is written. NULL: out of memory, or a disk is full. */
static uint8_t *begin_event(struct waits *waits, enum ctf_wait_id id, size_t bytes)
{
	size_t wanted = waits->used + CTF_HEADER_MAX_BYTES + bytes;
	uint64_t now = now_ns();
	uint8_t *grown;

	if (wanted > waits->room) {
		grown = wanted > KEPT_BYTES ? NULL : realloc(waits->buffer, 2 * wanted);
		if (!grown) {
			waits->dropped++;
			return NULL;
		}
		waits->buffer = grown;
		waits->room = 2 * wanted;
	}
	if (now < waits->last_ns)
		now = waits->last_ns;
	if (!waits->used)
		waits->begin_ns = waits->last_ns = now;
	waits->used += ctf_put_header(waits->buffer + waits->used, id, now, waits->last_ns);
	waits->last_ns = now;
	grown = waits->buffer + waits->used;
	waits->used += bytes;
	return grown;
}

static uint8_t *put_u32(uint8_t *to, uint32_t value)
{
	return mempcpy(to, &value, sizeof(value));
}

static uint8_t *put_u64(uint8_t *to, uint64_t value)
{
	return mempcpy(to, &value, sizeof(value));
}

static void put_wait(void *user, const struct wall_wait *wait)
{
	struct waits *waits = user;
	uint8_t *to;

	pthread_mutex_lock(&waits->lock);
	to = begin_event(waits, CTF_WAIT, CTF_WAIT_BYTES);
	if (to) {
		to = put_u32(to, (uint32_t)waits->recorder->root_pid);
		to = put_u32(to, wait->tid);
		to = put_u32(to, wait->native);
		to = put_u32(to, wait->python);
		to = put_u64(to, wait->start_ns);
		to = put_u64(to, wait->duration_ns);
		to = put_u64(to, wait->count);
		*to = (uint8_t)wait->kind;
	}
	pthread_mutex_unlock(&waits->lock);
}

static void put_thread(void *user, const struct wall_thread *thread)
{
	struct waits *waits = user;
	struct totals *totals = &waits->recorder->totals;
	uint8_t *to;

	pthread_mutex_lock(&waits->lock);
	to = begin_event(waits, CTF_THREAD_WAITS, CTF_THREAD_WAITS_BYTES);
	if (to) {
		to = put_u32(to, (uint32_t)waits->recorder->root_pid);
		to = put_u32(to, thread->tid);
		to = put_u64(to, thread->waits);
		to = put_u64(to, thread->waited_ns);
		to = put_u64(to, thread->seen);
		to = put_u64(to, thread->seen_ns);
		put_u64(to, thread->rejected);
	}
	totals->waited_ns += thread->waited_ns;
	totals->waits += thread->waits;
	totals->waits_seen += thread->seen;
	totals->waits_seen_ns += thread->seen_ns;
	totals->waits_rejected += thread->rejected;
	pthread_mutex_unlock(&waits->lock);
}

static struct timespec as_timespec(uint64_t when)
{
	return (struct timespec){(time_t)(when / 1000000000), (long)(when % 1000000000)};
}

static void *watch(void *argument)
{
	struct waits *waits = argument;

	pthread_mutex_lock(&waits->lock);
	while (!waits->stops) {
		struct timespec next;

		pthread_mutex_unlock(&waits->lock);
		next = as_timespec(wall_glance(waits->wall));
		pthread_mutex_lock(&waits->lock);
		while (!waits->stops &&
		       pthread_cond_timedwait(&waits->stop, &waits->lock, &next) != ETIMEDOUT)
			;
	}
	pthread_mutex_unlock(&waits->lock);
	return NULL;
}

static struct waits *waits_new(struct recorder *recorder)
{
	struct waits *waits = calloc(1, sizeof(*waits));
	pthread_condattr_t monotonic;

	if (!waits)
		return NULL;
	waits->recorder = recorder;
	pthread_mutex_init(&waits->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&waits->stop, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return waits;
}

/* Returns false: there is nothing to watch with, which is said. */
static bool begin_watching(struct waits *waits)
{
	struct recorder *recorder = waits->recorder;
	struct wall_order order = {.pid = recorder->root_pid,
				   .memory = &recorder->memory,
				   .period_ns = recorder->request->wall_ns,
				   .wait = put_wait,
				   .thread = put_thread,
				   .user = waits};
	struct errbuf said = {0};

	if (wall_new(&order, &waits->wall, &said)) {
		note(recorder, "Waiting threads are not seen: %s", said.text);
		return false;
	}
	if (said.text[0])
		note(recorder, "%s", said.text);
	if (recorder->window.begun)
		wall_begin(waits->wall, now_ns());
	return true;
}

void waits_start(struct recorder *recorder)
{
	struct waits *waits;

	atomic_store(&recorder->memory.header->interpreter.known, 0);
	if (!recorder->request->wall_ns || recorder->waits)
		return;
	waits = waits_new(recorder);
	if (!waits)
		return;
	recorder->waits = waits;
	if (!begin_watching(waits))
		return;
	waits->runs = !pthread_create(&waits->thread, NULL, watch, waits);
	if (!waits->runs)
		note(recorder, "Waiting threads are not seen: a thread cannot be started");
}

static void stop(struct waits *waits)
{
	if (!waits->runs)
		return;
	pthread_mutex_lock(&waits->lock);
	waits->stops = true;
	pthread_cond_signal(&waits->stop);
	pthread_mutex_unlock(&waits->lock);
	pthread_join(waits->thread, NULL);
	waits->runs = false;
}

void waits_window(struct recorder *recorder)
{
	if (recorder->waits && recorder->waits->wall)
		wall_begin(recorder->waits->wall, now_ns());
}

void waits_finish(struct recorder *recorder)
{
	struct waits *waits = recorder->waits;

	if (!waits || !waits->wall)
		return;
	stop(waits);
	wall_finish(waits->wall, now_ns());
	if (wall_refusals(waits->wall))
		note(recorder,
		     "The stacks of waiting threads could not be read: the program is not "
		     "dumpable, or kernel.yama.ptrace_scope (set it to 1 or less) or seccomp "
		     "(allow process_vm_readv) forbids it");
	wall_free(waits->wall);
	waits->wall = NULL;
}

static int append(struct waits *waits, uint8_t *packet, size_t length)
{
	int fd = directory_open_file(waits->recorder->directory.ust_fd, RECORDING_WAITS, O_APPEND);
	ssize_t written;
	int code = 0;

	if (fd < 0)
		return fd;
	do
		written = write(fd, packet, length);
	while (written < 0 && errno == EINTR);
	if (written == (ssize_t)length)
		waits->file_bytes += length;
	else
		code = written < 0 ? -errno : -ENOSPC;
	if (code && ftruncate(fd, (off_t)waits->file_bytes))
		code = -errno;
	close(fd);
	return code;
}

/* The buffer as a packet, taken out of it. NULL: it is empty, or there is no memory. */
static uint8_t *take_packet(struct waits *waits, size_t *ret_length)
{
	struct ctf_packet_prefix prefix = {.magic = CTF_MAGIC, .stream_id = CTF_STREAM_WAITS};
	uint8_t *packet = NULL;

	pthread_mutex_lock(&waits->lock);
	*ret_length = CTF_PREFIX_BYTES + waits->used;
	if (waits->used)
		packet = malloc(*ret_length);
	if (packet) {
		prefix.timestamp_begin = waits->begin_ns;
		prefix.timestamp_end = waits->last_ns;
		prefix.content_bits = prefix.packet_bits = 8ull * *ret_length;
		prefix.packet_seq_num = waits->seq;
		memcpy(prefix.uuid, waits->recorder->uuid, sizeof(prefix.uuid));
		memcpy(packet, &prefix, sizeof(prefix));
		memcpy(packet + sizeof(prefix), waits->buffer, waits->used);
		waits->used = 0;
	}
	pthread_mutex_unlock(&waits->lock);
	return packet;
}

void waits_flush(struct recorder *recorder)
{
	struct waits *waits = recorder->waits;
	struct definitions *definitions = &recorder->definitions;
	size_t length;
	uint8_t *packet = waits ? take_packet(waits, &length) : NULL;
	int code;

	if (!packet)
		return;
	/* After the packet was taken: whatever it names is committed. */
	code = definitions_take(definitions, &recorder->memory);
	code = code ? code : definitions_flush(definitions);
	code = code ? code : append(waits, packet, length);
	free(packet);
	if (!code) {
		waits->seq++;
		return;
	}
	if (!recorder->disk_full)
		note(recorder, "Part of the recording could not be written to %s: %s",
		     recorder->directory.path, strerror(-code));
	recorder->disk_full = true;
}

void waits_release(struct recorder *recorder)
{
	struct waits *waits = recorder->waits;

	if (!waits)
		return;
	stop(waits);
	wall_free(waits->wall);
	pthread_cond_destroy(&waits->stop);
	pthread_mutex_destroy(&waits->lock);
	free(waits->buffer);
	free(waits);
	recorder->waits = NULL;
}

uint64_t waits_bytes(const struct recorder *recorder)
{
	return recorder->waits ? recorder->waits->file_bytes : 0;
}
