/* SPDX-License-Identifier: MIT */
/*
 * How a fresh image and the recorder meet.
 *
 * The recorder puts two variables into the program's environment: LD_PRELOAD with the agent's path
 * in front of what the user had there, and
 *
 *   PATHPROF_RECORDING=SECRET:ABSTRACT:PATH
 *
 * SECRET is 32 hexadecimal digits, ABSTRACT the name of an abstract SOCK_SEQPACKET socket (without
 * its NUL), PATH the path of a socket file in the recording's directory, tried where the other is
 * refused. PATH may hold colons. The agent takes both variables out of the environment before the
 * program can see them and puts them back when the recorded process replaces its image.
 *
 * An exec whose events nobody disabled in time adds PATHPROF_SIGTRAP=default: SIGTRAP is ignored,
 * and the agent of the new image sets it to its default before anything else runs.
 *
 * The agent connects, sends one struct handshake_hello, receives one struct handshake_reply with
 * the memfd as SCM_RIGHTS, maps it, and closes everything. All within HANDSHAKE_TIMEOUT_MS.
 */
#ifndef PATHPROF_AGENT_GUARD_HANDSHAKE_H
#define PATHPROF_AGENT_GUARD_HANDSHAKE_H

#include <stdint.h>

#define HANDSHAKE_VARIABLE   "PATHPROF_RECORDING"
#define HANDSHAKE_TRAP	     "PATHPROF_SIGTRAP"
#define HANDSHAKE_MAGIC	     0x4f4c4c48u /* "HLLO" */
#define HANDSHAKE_VERSION    1u
#define HANDSHAKE_TIMEOUT_MS 2000

enum handshake_interpreter {
	INTERPRETER_NONE = 0,	/* no interpreter in the process */
	INTERPRETER_READ,	/* found, its stacks are recorded */
	INTERPRETER_UNREADABLE, /* found, but its version or layout is not known */
};

struct handshake_hello {
	uint32_t magic;
	uint32_t version;
	char secret[32];	      /* hexadecimal digits, not terminated */
	uint32_t pid;		      /* in the sender's namespace; SO_PEERCRED counts */
	uint32_t interpreter;	      /* enum handshake_interpreter */
	uint32_t interpreter_version; /* as Py_Version */
	uint32_t pad;
	char reason[128]; /* why INTERPRETER_UNREADABLE */
	char path[256];	  /* /proc/self/exe, cut */
};

enum handshake_verdict {
	HANDSHAKE_RECORD = 1, /* the memfd comes with the reply */
	HANDSHAKE_REFUSE,     /* not a process that this recording records */
};

struct handshake_reply {
	uint32_t magic;
	uint32_t version;
	uint32_t verdict; /* enum handshake_verdict */
	uint32_t pad;
};

#endif
