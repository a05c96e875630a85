# SPDX-License-Identifier: MIT
"""Situations in which the kernel refuses something, made for one command: seccomp filters, an ordinary user,
files of /proc/sys as a test wants them."""

import ctypes
import os
import shutil
import struct
import subprocess

import pytest
from conftest import BUILD

CALLS = {  # by the name of the machine
    "x86_64": {"perf_event_open": 298, "pidfd_getfd": 438, "process_vm_readv": 310, "ioctl": 16},
    "aarch64": {"perf_event_open": 241, "pidfd_getfd": 438, "process_vm_readv": 270, "ioctl": 29},
}.get(os.uname().machine, {})
needs_seccomp = pytest.mark.skipif(not CALLS, reason="SKIPPED: unknown system call numbers")

LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06  # classic BPF: LD_W_ABS, JEQ_K, RET_K
NUMBER_AT, ARGUMENTS_AT = 0, 16  # in struct seccomp_data
KILL_PROCESS, FAIL, ALLOW = 0x80000000, 0x00050000, 0x7fff0000
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2


def rule(call, error=None, argument=None, value=0, unless=False):
    """The call fails with errno `error`, or kills where that is None: always, or where (unless: unless) the low half
    of its argument of that number is `value`."""
    verdict = (RETURN, 0, 0, KILL_PROCESS if error is None else FAIL | error)
    steps = [(LOAD, 0, 0, NUMBER_AT), (JUMP_IF_EQUAL, 0, 1 if argument is None else 3, CALLS[call])]
    if argument is not None:
        steps += [(LOAD, 0, 0, ARGUMENTS_AT + 8 * argument),
                  (JUMP_IF_EQUAL, unless, not unless, value)]
    return [*steps, verdict]


def seccomp(*rules):
    """What a child runs before its exec: it and its children live under these rules from then on."""
    steps = [step for each in rules for step in each] + [(RETURN, 0, 0, ALLOW)]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    kept = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(kept))
    libc = ctypes.CDLL(None, use_errno=True)

    def run():
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0):
            raise OSError(ctypes.get_errno(), "seccomp")
        return kept  # lives until here
    return run


def forbid(error, call="perf_event_open"):
    """The call fails with this errno, as container runtimes have it."""
    return seccomp(rule(call, error))


def nobody(tmp_path):
    """How to start a command as an ordinary user, who may write in tmp_path; skips where none can."""
    if os.geteuid() == 0:
        if not all(p.stat().st_mode & 1 for p in (BUILD, *BUILD.parents)):
            pytest.skip("SKIPPED: another user cannot reach the build tree")
        os.chmod(tmp_path, 0o777)
        for parent in tmp_path.parents[:3]:
            if parent.name.startswith(("pytest", "pt-")):
                os.chmod(parent, 0o755)
    return {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}


def with_sysctls(tmp_path, **values):
    """A command in front of another, for which /proc/sys/kernel holds these files and no others."""
    folder = tmp_path / "sysctls"
    for name, value in values.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    before = ["unshare", "-m", "sh", "-c",
              f'mount --bind {folder} /proc/sys/kernel && exec "$@"', "sh"]
    if subprocess.run([*before, "true"], capture_output=True, check=False).returncode:
        pytest.skip("SKIPPED: no mount can be made here")
    return before


# Before Linux 5.13, by a wrapper of syscall(2) in the recorder: no sigtrap; a PMU, whose cycles are page faults.
OLD_KERNEL = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>

long syscall(long number, ...)
{
	struct perf_event_attr changed;
	long a[6], result;
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_perf_event_open) {
		memcpy(&changed, (void *)a[0], sizeof(changed));
		if (changed.sigtrap || changed.remove_on_exec) {
			errno = EINVAL;
			return -1;
		}
		if (changed.type == PERF_TYPE_HARDWARE && changed.config == PERF_COUNT_HW_CPU_CYCLES) {
			changed.type = PERF_TYPE_SOFTWARE;
			changed.config = PERF_COUNT_SW_PAGE_FAULTS;
		}
		a[0] = (long)&changed;
	}
	register long r10 __asm__("r10") = a[3];
	register long r8 __asm__("r8") = a[4];
	register long r9 __asm__("r9") = a[5];
	__asm__ volatile("syscall" : "=a"(result)
			 : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	if (result < 0 && result > -4096) {
		errno = (int)-result;
		return -1;
	}
	return result;
}
"""


@pytest.fixture
def old_kernel(tmp_path):
    if os.uname().machine != "x86_64" or not shutil.which("gcc"):
        pytest.skip("SKIPPED: no compiler, or another machine")
    library = tmp_path / "old_kernel.so"
    library.with_suffix(".c").write_text(OLD_KERNEL)
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", library, library.with_suffix(".c")], check=True)
    return {**os.environ, "LD_PRELOAD": str(library)}
