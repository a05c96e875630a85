/* SPDX-License-Identifier: MIT */
/*
 * Where agents say hello: agent/guard/handshake.h.
 *
 *   fresh image --connect--> abstract socket, or the path in the recording's directory
 *               --hello----> version and secret right, sent by COMMAND's own process: the memfd
 *                            anything else: refused, or closed
 *
 * Anybody may connect, so nobody is waited for: connections are polled beside all else, at most
 * PENDING_MEETINGS at a time. A second hello of COMMAND's process is its next image after an exec:
 * what the former one left is finished first, since its threads are gone.
 */
#include "tool/recorder/recorder_types.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/cpython/cpython.h"

#define BACKLOG 16

static int listen_abstract(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(address.sun_path + 1, name, length);
	if (fd >= 0 && (bind(fd, (struct sockaddr *)&address,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) ||
			listen(fd, BACKLOG))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Through the directory's descriptor: its path may be longer than an address. */
static int listen_path(int directory_fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" RECORDING_SOCKET,
		 directory_fd);
	if (fd >= 0 &&
	    (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, BACKLOG))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

int meet_listen(struct recorder *recorder, struct errbuf *err)
{
	recorder->listen_fds[0] = listen_abstract(recorder->abstract_name);
	recorder->listen_fds[1] = listen_path(recorder->directory.fd);
	/* One is enough: some file systems have no sockets, some sandboxes no abstract ones. */
	if (recorder->listen_fds[0] < 0 && recorder->listen_fds[1] < 0)
		return errbuf_set(err, -errno, "Cannot listen for the agent: %s", strerror(errno));
	return 0;
}

void meet_accept(struct recorder *recorder, int listen_fd)
{
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (recorder->nr_meetings == PENDING_MEETINGS) {
		close(fd); /* somebody fills the room; an agent that fails here runs unrecorded */
		return;
	}
	recorder->meeting_fds[recorder->nr_meetings++] = fd;
}

static void reply(int fd, enum handshake_verdict verdict, int memory_fd)
{
	struct handshake_reply answer = {
		.magic = HANDSHAKE_MAGIC, .version = HANDSHAKE_VERSION, .verdict = verdict};
	struct iovec part = {&answer, sizeof(answer)};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (verdict == HANDSHAKE_RECORD) {
		struct cmsghdr *header;

		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &memory_fd, sizeof(memory_fd));
	}
	/* A peer that is gone is a process that died: its end is seen elsewhere. */
	(void)sendmsg(fd, &message, MSG_NOSIGNAL);
}

static bool hello_is_ours(const struct recorder *recorder, const struct handshake_hello *hello)
{
	unsigned int difference = 0;

	for (unsigned int i = 0; i < sizeof(hello->secret); i++)
		difference |= (unsigned int)(hello->secret[i] ^ recorder->secret[i]);
	return hello->magic == HANDSHAKE_MAGIC && hello->version == HANDSHAKE_VERSION &&
	       difference == 0;
}

/* @problem: NULL: its stacks are recorded. */
static void keep_interpreter(struct recorder *recorder, uint32_t version, const char *path,
			     const char *problem)
{
	struct interpreter *it = &recorder->interpreters[recorder->nr_interpreters];

	if (recorder->nr_interpreters == INTERPRETERS_MAX)
		return;
	recorder->nr_interpreters++;
	it->pid = (uint32_t)recorder->root_pid;
	if (version)
		snprintf(it->name, sizeof(it->name), "CPython %u.%u.%u", version >> 24,
			 version >> 16 & 255, version >> 8 & 255);
	else /* it is older than the symbol that tells */
		snprintf(it->name, sizeof(it->name), "CPython");
	snprintf(it->path, sizeof(it->path), "%s", path);
	if (!problem)
		return;
	snprintf(it->problem, sizeof(it->problem), "%s",
		 problem[0] ? problem : "its layout is not known");
	note(recorder, "The stacks of the interpreter %s are not recorded: %s", it->path,
	     it->problem);
}

static void hear_interpreter(struct recorder *recorder, struct handshake_hello *hello)
{
	hello->path[sizeof(hello->path) - 1] = 0;
	hello->reason[sizeof(hello->reason) - 1] = 0;
	if (hello->interpreter != INTERPRETER_NONE)
		keep_interpreter(recorder, hello->interpreter_version, hello->path,
				 hello->interpreter == INTERPRETER_UNREADABLE ? hello->reason
									      : NULL);
}

/* Of the interpreter that is the last, once the agent has told its build. */
static void keep_build(struct recorder *recorder)
{
	struct memory_interpreter *told = &recorder->memory.header->interpreter;
	struct cpython cpython;

	_Static_assert(sizeof(cpython) <= sizeof(told->cpython), "it is handed over there");
	if (!recorder->nr_interpreters || !atomic_load_explicit(&told->known, memory_order_acquire))
		return;
	memcpy(&cpython, told->cpython, sizeof(cpython));
	recorder->interpreters[recorder->nr_interpreters - 1].has_no_lock =
		cpython_is_free_threaded(&cpython);
}

void meet_late_interpreter(struct recorder *recorder)
{
	struct memory_interpreter *told = &recorder->memory.header->interpreter;
	uint32_t late = atomic_exchange(&told->late, MEMORY_LATE_NONE);
	char path[MEMORY_PATH_BYTES];

	if (late != MEMORY_LATE_NONE) {
		snprintf(path, sizeof(path), "%.*s", (int)sizeof(path) - 1, told->late_path);
		keep_interpreter(recorder, told->late_version, path,
				 late == MEMORY_LATE_UNREADABLE ? "" : NULL);
	}
	keep_build(recorder);
}

/* COMMAND's process, in a new image. */
static void welcome(struct recorder *recorder, struct handshake_hello *hello)
{
	pthread_mutex_lock(&recorder->lock);
	if (recorder->agent_came)
		drain_end_image(recorder, now_ns());
	meet_late_interpreter(recorder); /* of the image before */
	recorder->agent_came = true;
	hear_interpreter(recorder, hello);
	waits_start(recorder);
	pthread_mutex_unlock(&recorder->lock);
}

void meet_hear(struct recorder *recorder, unsigned int meeting)
{
	int fd = recorder->meeting_fds[meeting];
	struct handshake_hello hello;
	struct ucred peer = {0};
	socklen_t length = sizeof(peer);
	ssize_t received = recv(fd, &hello, sizeof(hello), MSG_DONTWAIT);

	if (received < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	recorder->meeting_fds[meeting] = recorder->meeting_fds[--recorder->nr_meetings];
	if (received == sizeof(hello) && hello_is_ours(recorder, &hello) &&
	    !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length)) {
		if (peer.pid == recorder->root_pid) {
			welcome(recorder, &hello);
			reply(fd, HANDSHAKE_RECORD, recorder->memory_fd);
		} else {
			reply(fd, HANDSHAKE_REFUSE, -1);
		}
	}
	close(fd);
}

void meet_close(struct recorder *recorder)
{
	while (recorder->nr_meetings > 0)
		close(recorder->meeting_fds[--recorder->nr_meetings]);
	for (int i = 0; i < 2; i++) {
		if (recorder->listen_fds[i] >= 0)
			close(recorder->listen_fds[i]);
		recorder->listen_fds[i] = -1;
	}
	if (recorder->directory.fd >= 0)
		unlinkat(recorder->directory.fd, RECORDING_SOCKET, 0);
}
