/* SPDX-License-Identifier: MIT */
/*
 * Meeting the recorder: handshake.h from the agent's side.
 *
 * Before main(), once. Two descriptors exist for that moment and are closed again. The abstract
 * socket is refused in another network namespace, the path in a chroot or to another user: each is
 * tried. Whatever fails, the program runs on, unrecorded.
 */
#include "agent/guard/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "agent/guard/handshake.h"

#define NS_PER_MS 1000000ull

/* PATHPROF_RECORDING, taken apart. */
struct meeting {
	const char *secret;   /* 32 digits */
	const char *abstract; /* not terminated */
	size_t abstract_length;
	const char *path;
};

static int parse(const char *value, struct meeting *ret_meeting)
{
	const size_t secret_length = sizeof(((struct handshake_hello *)0)->secret);
	const char *colon;

	if (strspn(value, "0123456789abcdefABCDEF") != secret_length || value[secret_length] != ':')
		return -EINVAL;
	colon = strchr(value + secret_length + 1, ':');
	if (colon == NULL)
		return -EINVAL;
	ret_meeting->secret = value;
	ret_meeting->abstract = value + secret_length + 1;
	ret_meeting->abstract_length = (size_t)(colon - ret_meeting->abstract);
	ret_meeting->path = colon + 1;
	return 0;
}

/* Each wait gets what is left of the whole meeting's time. */
static int set_timeout(int fd, int option, uint64_t deadline_ns)
{
	uint64_t now_ns = agent_now_ns();
	struct timeval left = {0};

	if (now_ns >= deadline_ns)
		return -ETIMEDOUT;
	left.tv_sec = (time_t)((deadline_ns - now_ns) / (1000 * NS_PER_MS));
	left.tv_usec = (suseconds_t)((deadline_ns - now_ns) / 1000 % 1000000) + 1;
	if (left.tv_usec == 1000000)
		left.tv_usec--;
	return setsockopt(fd, SOL_SOCKET, option, &left, sizeof(left)) < 0 ? -errno : 0;
}

static int connect_abstract(int fd, const struct meeting *meeting)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = meeting->abstract_length;

	if (length == 0 || length > sizeof(address.sun_path) - 1)
		return -EINVAL;
	memcpy(address.sun_path + 1, meeting->abstract, length);
	length += offsetof(struct sockaddr_un, sun_path) + 1;
	return connect(fd, (struct sockaddr *)&address, (socklen_t)length) < 0 ? -errno : 0;
}

static int connect_path(int fd, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *slash = strrchr(path, '/');
	char directory[PATH_MAX];
	int directory_fd = -1, r, n;

	if (slash == NULL || (size_t)(slash - path) >= sizeof(directory) - 1)
		return -EINVAL;
	if (strlen(path) < sizeof(address.sun_path)) {
		memcpy(address.sun_path, path, strlen(path) + 1);
	} else { /* too long for an address: through the directory's descriptor */
		memcpy(directory, path, (size_t)(slash - path) + 1);
		directory[slash - path + 1] = '\0';
		directory_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (directory_fd < 0)
			return -errno;
		n = snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s",
			     directory_fd, slash + 1);
		if (n < 0 || (size_t)n >= sizeof(address.sun_path)) {
			close(directory_fd);
			return -ENAMETOOLONG;
		}
	}
	r = connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	if (directory_fd >= 0)
		close(directory_fd);
	return r;
}

/* The descriptor that came with @message, or -1; any further one is closed. */
static int take_descriptor(struct msghdr *message)
{
	int fd = -1, fds[4];
	size_t n;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		if (n > sizeof(fds) / sizeof(fds[0]))
			n = sizeof(fds) / sizeof(fds[0]);
		memcpy(fds, CMSG_DATA(c), n * sizeof(int));
		for (size_t i = 0; i < n; i++) {
			if (fd < 0)
				fd = fds[i];
			else
				close(fds[i]);
		}
	}
	return fd;
}

static int receive_reply(int socket_fd, int *ret_memory_fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct handshake_reply reply = {0};
	struct iovec part = {.iov_base = &reply, .iov_len = sizeof(reply)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	ssize_t n;
	int fd;

	do {
		n = recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	fd = take_descriptor(&message);
	if (n == sizeof(reply) && reply.magic == HANDSHAKE_MAGIC &&
	    reply.version == HANDSHAKE_VERSION && reply.verdict == HANDSHAKE_RECORD && fd >= 0) {
		*ret_memory_fd = fd;
		return 0;
	}
	if (fd >= 0)
		close(fd);
	return n == sizeof(reply) && reply.verdict == HANDSHAKE_REFUSE ? -EACCES : -EPROTO;
}

static int talk(int fd, const struct meeting *meeting, const struct handshake_hello *hello,
		bool abstract, int *ret_memory_fd)
{
	uint64_t deadline_ns = agent_now_ns() + HANDSHAKE_TIMEOUT_MS / 2 * NS_PER_MS;
	int r = set_timeout(fd, SO_SNDTIMEO, deadline_ns);

	if (r == 0)
		r = abstract ? connect_abstract(fd, meeting) : connect_path(fd, meeting->path);
	if (r == 0 && send(fd, hello, sizeof(*hello), MSG_NOSIGNAL) != (ssize_t)sizeof(*hello))
		r = -errno;
	if (r == 0)
		r = set_timeout(fd, SO_RCVTIMEO, deadline_ns);
	return r == 0 ? receive_reply(fd, ret_memory_fd) : r;
}

int meet_recorder(const char *value, struct handshake_hello *hello, int *ret_memory_fd)
{
	struct meeting meeting;
	int r = parse(value, &meeting);

	if (r < 0)
		return r;
	memcpy(hello->secret, meeting.secret, sizeof(hello->secret));
	for (int abstract = 1; abstract >= 0; abstract--) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

		if (fd < 0)
			return -errno;
		r = talk(fd, &meeting, hello, abstract, ret_memory_fd);
		close(fd);
		if (r == 0 || r == -EACCES)
			return r;
	}
	return r;
}
