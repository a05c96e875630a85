/* SPDX-License-Identifier: MIT */
/*
 * aarch64: nothing in the registers tells a call that begins again from one that has not begun,
 * so nothing is decided here. The man page of record says what software clocks can do to a
 * program's EINTR.
 */
#include "agent/sources/interrupted_call.h"

void interrupted_call_settle(void *context)
{
	(void)context;
}

/* The first argument is lost, so no call can begin again. */
void interrupted_call_resume(int signo, void *context)
{
	(void)signo;
	(void)context;
}
