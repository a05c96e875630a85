/* SPDX-License-Identifier: MIT */
/*
 * An agent that ticks by hand, so that the recorder is tested without signals: meets the recorder
 * in a constructor and writes samples whose number and values are known.
 *
 *   FAKE_SAMPLES=N   N samples, times 1 us apart, count = 1000 + i; every 10th one wide
 *   FAKE_SLOTS=N     that many in each of N slots, one thread after the other
 *   FAKE_OPEN=1      the last slot is left as a killed thread leaves it
 *   FAKE_SECRET=1    says hello with a wrong secret
 *   FAKE_CHILD=1     says hello from a child
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/guard/handshake.h"
#include "core/memory/memory.h"

#define WAIT_TRIES 100000000

static unsigned long option(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 10) : otherwise;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Connects to the abstract socket of the variable and says hello. Returns the socket. */
static int say_hello(const char *variable)
{
	struct handshake_hello hello = {.magic = HANDSHAKE_MAGIC,
					.version = HANDSHAKE_VERSION,
					.pid = (uint32_t)getpid(),
					.interpreter = INTERPRETER_UNREADABLE,
					.interpreter_version = 0x030d00f0,
					.reason = "3.13 is not known",
					.path = "/fake/python3"};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *name = variable + sizeof(hello.secret) + 1, *end = strchr(name, ':');
	size_t length = (size_t)(end - name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(hello.secret, variable, sizeof(hello.secret));
	hello.secret[0] ^= option("FAKE_SECRET", 0) ? 1 : 0;
	memcpy(address.sun_path + 1, name, length);
	if (connect(fd, (struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) ||
	    send(fd, &hello, sizeof(hello), 0) != sizeof(hello))
		abort();
	return fd;
}

/* The memfd of the reply; -1: refused or hung up on. */
static int hear_reply(int fd)
{
	struct handshake_reply reply = {0};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = {&reply, sizeof(reply)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes)};
	int memory_fd = -1;

	if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC) == sizeof(reply) &&
	    reply.verdict == HANDSHAKE_RECORD)
		memcpy(&memory_fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(memory_fd));
	close(fd);
	return memory_fd;
}

static void tick(struct memory *memory, struct slot *slot, unsigned long samples)
{
	uint64_t time_ns = now_ns();

	for (unsigned long i = 0; i < samples; i++)
		slot_write_sample(memory, slot, 0, time_ns + 1000 * i, 0, 0,
				  1000 + i + (i % 10 ? 0 : 1ull << 40));
}

/* A real agent would count a loss; here every sample must arrive. */
static struct slot *wait_for_slot(struct memory *memory)
{
	struct slot *slot = slot_claim(memory);

	for (unsigned long tries = 0; !slot && tries < WAIT_TRIES; tries++) {
		sched_yield();
		slot = slot_claim(memory);
	}
	if (!slot)
		abort();
	return slot;
}

static void record(int memory_fd)
{
	unsigned long slots = option("FAKE_SLOTS", 1);
	struct memory memory;

	if (memory_map(memory_fd, &memory, NULL))
		abort();
	close(memory_fd);
	for (unsigned long i = 0; i < slots; i++) {
		struct slot *slot = wait_for_slot(&memory);

		slot_activate(&memory, slot, (uint32_t)getpid(), (uint32_t)(getpid() + i),
			      now_ns());
		snprintf(slot->name, sizeof(slot->name), "fake%u", (unsigned int)i % 100000);
		tick(&memory, slot, option("FAKE_SAMPLES", 0));
		slot->cpu_ns = 1;
		if (i + 1 < slots || !option("FAKE_OPEN", 0))
			slot_end(&memory, slot, now_ns());
	}
}

__attribute__((constructor)) static void start(void)
{
	const char *variable = getenv(HANDSHAKE_VARIABLE);
	int memory_fd;

	if (!variable)
		return;
	if (option("FAKE_CHILD", 0)) {
		pid_t child = fork();

		if (child == 0) {
			memory_fd = hear_reply(say_hello(variable));
			_exit(memory_fd < 0 ? 0 : 1);
		}
		waitpid(child, NULL, 0);
		return;
	}
	memory_fd = hear_reply(say_hello(variable));
	unsetenv("LD_PRELOAD");
	unsetenv(HANDSHAKE_VARIABLE);
	if (memory_fd >= 0)
		record(memory_fd);
}
