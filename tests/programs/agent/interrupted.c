/* SPDX-License-Identifier: MIT */
/*
 * agent-interrupted ROUNDS | forks ROUNDS | threads ROUNDS
 *
 * Blocking calls that the program's own alarm meets, under ticks. Without SA_RESTART each must
 * give EINTR at the first alarm; with it each must go on until the alarm's handler does what it
 * waits for. Prints for each kind of call how often that was so: NAME ENDED RESTARTED
 * `forks`: alarms all the time, none of which may end a fork. `threads`: as the first for read(),
 * beside a thread that would take the alarm as well.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ALARM_US 3000  /* the call has long begun */
#define AGAIN_US 50000 /* a call that the first alarm did not end: counted as that */

static int pair[2], listener, full_listener, lock_held, lock_wanted, queue;
static sem_t semaphore;
static struct sockaddr_un address, full_address;
static volatile sig_atomic_t inside, alarms_inside;
static void (*volatile release)(void);

static void work(long us)
{
	struct timespec start, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000000 + (now.tv_nsec - start.tv_nsec) / 1000 < us);
}

static void on_alarm(int signo)
{
	(void)signo;
	alarms_inside += inside;
	if (release != NULL)
		release();
}

static void set_alarm(long us, long again_us, int flags)
{
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = flags};
	struct itimerval timer = {.it_value = {.tv_usec = us},
				  .it_interval = {.tv_usec = again_us}};

	if (us != 0)
		sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

/* ---- the calls, and what their waiting ends with: from a signal handler ---- */

static int call_read(void)
{
	char byte;

	return (int)read(pair[0], &byte, 1);
}

static void release_read(void)
{
	if (write(pair[1], "", 1) != 1)
		_exit(3);
}

static int connect_to(const struct sockaddr_un *to)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	int r = connect(fd, (const struct sockaddr *)to, sizeof(*to));
	int saved_errno = errno;

	close(fd);
	errno = saved_errno;
	return r;
}

static int call_accept(void)
{
	int fd = accept(listener, NULL, NULL);

	return fd < 0 ? fd : close(fd);
}

static void release_accept(void)
{
	connect_to(&address);
}

/* The backlog of full_listener stays full but for what the handler takes out. */
static int call_connect(void)
{
	return connect_to(&full_address);
}

static void release_connect(void)
{
	close(accept(full_listener, NULL, NULL));
}

static int call_sem_wait(void)
{
	return sem_wait(&semaphore);
}

static void release_sem_wait(void)
{
	sem_post(&semaphore);
}

static pid_t child;

static int call_wait(void)
{
	return (int)waitpid(child, NULL, 0);
}

static void release_wait(void)
{
	kill(child, SIGKILL);
}

static int call_flock(void)
{
	int r = flock(lock_wanted, LOCK_EX);

	if (r == 0)
		flock(lock_wanted, LOCK_UN);
	return r;
}

static void release_flock(void)
{
	flock(lock_held, LOCK_UN);
}

static int call_msgrcv(void)
{
	struct {
		long type;
		char byte;
	} message;

	return (int)msgrcv(queue, &message, sizeof(message.byte), 0, 0);
}

static void release_msgrcv(void)
{
	const struct {
		long type;
		char byte;
	} message = {.type = 1};

	msgsnd(queue, &message, sizeof(message.byte), IPC_NOWAIT);
}

static const struct {
	const char *name;
	int (*call)(void);
	void (*release)(void);
	int restarts; /* 0: gives EINTR whatever the handler's flags say (signal(7)) */
} kinds[] = {
	{"read", call_read, release_read, 1},
	{"accept", call_accept, release_accept, 1},
	{"connect", call_connect, release_connect, 1},
	{"sem_wait", call_sem_wait, release_sem_wait, 1},
	{"wait", call_wait, release_wait, 1},
	{"flock", call_flock, release_flock, 1},
	{"msgrcv", call_msgrcv, release_msgrcv, 0},
};

#define NR_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static int listen_at(struct sockaddr_un *at, int number)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	at->sun_family = AF_UNIX;
	snprintf(at->sun_path + 1, sizeof(at->sun_path) - 1, "interrupted-%d-%d", getpid(), number);
	if (bind(fd, (struct sockaddr *)at, sizeof(*at)) != 0 || listen(fd, number) != 0)
		exit(2);
	return fd;
}

/* The backlog keeps a connection whose other end is closed until it is accepted. */
static void fill(void)
{
	struct timeval soon = {.tv_usec = 1};
	int one = socket(AF_UNIX, SOCK_STREAM, 0);

	setsockopt(one, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon));
	while (connect(one, (struct sockaddr *)&full_address, sizeof(full_address)) == 0) {
		close(one);
		one = socket(AF_UNIX, SOCK_STREAM, 0);
		setsockopt(one, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon));
	}
	close(one);
}

static void prepare(void)
{
	FILE *file = tmpfile();
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(file));
	lock_held = fileno(file);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 || sem_init(&semaphore, 0, 0) != 0)
		exit(2);
	signal(SIGPIPE, SIG_IGN);
	lock_wanted = open(path, O_RDWR);
	queue = msgget(IPC_PRIVATE, 0600);
	listener = listen_at(&address, 1);
	full_listener = listen_at(&full_address, 0);
}

/* Before the call there is nothing that ends it. */
static void prepare_round(size_t kind)
{
	char left[64];

	msgrcv(queue, left, sizeof(left) - sizeof(long), 0, IPC_NOWAIT);
	if (kinds[kind].call == call_wait) {
		child = fork();
		if (child == 0)
			for (;;)
				pause();
	}
	if (kinds[kind].call == call_connect)
		fill();
	flock(lock_held, LOCK_EX);
}

static int one_round(size_t kind, int flags)
{
	int r, result;

	prepare_round(kind);
	release = flags & SA_RESTART ? kinds[kind].release : NULL;
	alarms_inside = 0;
	work(300);
	set_alarm(ALARM_US, AGAIN_US, flags);
	inside = 1;
	r = kinds[kind].call();
	result = errno;
	inside = 0;
	set_alarm(0, 0, 0);
	if (kinds[kind].call == call_wait && r < 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	if (!(flags & SA_RESTART) || !kinds[kind].restarts)
		return r < 0 && result == EINTR && alarms_inside == 1;
	return r >= 0;
}

static int calls(int rounds)
{
	for (size_t kind = 0; kind < NR_KINDS; kind++) {
		int ended = 0, restarted = 0;

		for (int i = 0; i < rounds; i++) {
			ended += one_round(kind, 0);
			restarted += one_round(kind, SA_RESTART);
		}
		printf("%s %d %d\n", kinds[kind].name, ended, restarted);
	}
	return msgctl(queue, IPC_RMID, NULL);
}

static int forks(int rounds)
{
	int failed = 0;

	release = NULL;
	set_alarm(300, 300, 0);
	for (int i = 0; i < rounds; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		failed += pid < 0;
		while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	set_alarm(0, 0, 0);
	printf("failed %d\n", failed);
	return 0;
}

static void *idle(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static int threads(int rounds)
{
	pthread_t thread;
	int ended = 0;

	pthread_create(&thread, NULL, idle, NULL);
	for (int i = 0; i < rounds; i++)
		ended += one_round(0, 0);
	printf("ended %d\n", ended);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	prepare();
	if (argc > 2 && strcmp(argv[1], "forks") == 0)
		return forks(atoi(argv[2]));
	if (argc > 2 && strcmp(argv[1], "threads") == 0)
		return threads(atoi(argv[2]));
	return calls(atoi(argv[1]));
}
