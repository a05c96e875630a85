# SPDX-License-Identifier: MIT
"""pathprof report on a terminal: width, colour, the pager."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios

import pytest
from conftest import BUILD, PATHPROF, SECONDS


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    directory = tmp_path_factory.mktemp("example") / "recording"
    subprocess.run([BUILD / "tests/support/example-recording", directory], check=True)
    return directory


@pytest.fixture
def terminal(example):
    """Run pathprof report with stdout on a terminal: (exit status, what the terminal got)."""
    def run(*arguments, columns=80, recording=example, says=None, **variables):
        controller, screen = pty.openpty()
        fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("NO_COLOR", "PAGER", "PATHPROF_PAGER", "COLUMNS", "LESS")}
        environment |= {"TERM": "xterm", "TZ": "UTC", "LC_ALL": "C.UTF-8", **variables}
        process = subprocess.Popen(
            [PATHPROF, "report", *arguments, recording], stdin=screen, stdout=screen,
            stderr=subprocess.PIPE, env=environment, start_new_session=True)
        os.close(screen)
        got = b""
        while select.select([controller], [], [], SECONDS)[0]:
            try:
                part = os.read(controller, 65536)
            except OSError:  # EIO: nobody has the terminal open any more
                break
            if not part:
                break
            got += part
        status = process.wait(SECONDS)
        errors = process.stderr.read().decode()
        process.stderr.close()
        os.close(controller)
        assert errors == "" if says is None else says in errors, errors
        return status, got.decode().replace("\r\n", "\n")
    return run


def table(text):
    return text[text.index(" Self%"):].splitlines()


def test_rows_fit_the_terminal(terminal):
    _, text = terminal("--no-pager", "--color=never", "--by=function", columns=60)
    assert table(text) == [
        " Self%     ~Self  Total%    ~Total  Function",
        " 62.5%   50.0 ms   62.5%   50.0 ms  burn",
        ' 25.0%   20.0 ms   25.0%   20.0 ms  </script>?[…;"\\?\\u202e&?',
        " 12.5%   10.0 ms  100.0%   80.0 ms  main",
        "  0.0%         0  100.0%   80.0 ms  <module>"]


def test_a_wide_terminal_cuts_nothing(terminal):
    _, text = terminal("--no-pager", "--color=never", columns=200)
    assert ' 25.0%   20.0 ms   25.0%   20.0 ms  </script>?[31m;"\\?\\u202e&?  x;y:1' in table(text)


def test_columns_of_the_environment_win(terminal):
    _, text = terminal("--no-pager", "--color=never", columns=200, COLUMNS="60")
    assert table(text)[0] == " Self%     ~Self  Total%    ~Total  Function"


def test_colour_is_for_terminals_and_can_be_switched_off(terminal, pathprof, example):
    heat = "\033[1;31m 62.5%\033[0m"
    assert heat in terminal("--no-pager")[1]
    assert "\033" not in terminal("--no-pager", NO_COLOR="1")[1]
    assert heat in terminal("--no-pager", NO_COLOR="")[1]  # empty is as if it were not set
    assert heat in terminal("--no-pager", "--color=always", NO_COLOR="1")[1]
    assert "\033" not in terminal("--no-pager", "--color=never")[1]
    assert "\033" not in terminal("--no-pager", TERM="dumb")[1]
    assert "\033" not in pathprof("report", example).stdout
    assert heat in pathprof("report", "--color=always", example).stdout


def test_the_pager_of_the_environment_is_used(terminal):
    pager = "sed 's/^/> /'"
    status, text = terminal("--color=never", PATHPROF_PAGER=pager, PAGER="false")
    assert status == 0
    assert all(line.startswith("> ") for line in text.splitlines())
    assert text == "".join(f"> {line}\n" for line in
                           terminal("--color=never", "--no-pager")[1].splitlines())
    assert terminal("--color=never", PAGER=pager)[1] == text


@pytest.mark.parametrize("pager", ["", "cat"])
def test_no_pager_is_started_for_cat_or_nothing(terminal, pager):
    plain = terminal("--color=never", "--no-pager", PAGER="echo paged")
    assert terminal("--color=never", PATHPROF_PAGER=pager, PAGER="echo paged") == plain
    assert "paged" not in plain[1]


def test_less_leaves_at_once_what_fits_and_gets_colours(terminal):
    status, text = terminal("--limit=1", columns=100)
    assert status == 0
    assert "\033[1;31m 62.5%" in text


def test_less_is_given_its_options_unless_they_are_set(terminal):
    assert terminal(PAGER='echo "[$LESS]"; cat >/dev/null') == (0, "[FRX]\n")
    assert terminal(PAGER='echo "[$LESS]"; cat >/dev/null', LESS="S") == (0, "[S]\n")


def test_a_reader_who_leaves_early_is_no_error(terminal, tmp_path):
    large = tmp_path / "large"  # more than a pipe holds, so that the writer meets its end
    subprocess.run([BUILD / "tests/support/make-recording", large, "--samples", "9000",
                    "--stacks", "3000", "--functions", "3000"], check=True)
    assert len(terminal("--no-pager", "--limit=0", recording=large)[1]) > 200_000
    assert terminal("--limit=0", recording=large, PAGER="exit 3") == (0, "")


def test_the_status_is_the_reports_not_the_pagers(terminal):
    assert terminal(PAGER="cat; exit 9")[0] == 0


@pytest.mark.parametrize("pager", ["/nonexistent", "nonexistent-pager -R", "/etc/passwd", "exec /nonexistent"])
def test_without_a_pager_that_runs_the_report_is_plain(terminal, pager):
    plain = terminal("--color=never", "--no-pager")
    assert terminal("--color=never", PAGER=pager, says=f"the pager '{pager}' cannot be run") == plain


def test_without_a_pager_that_runs_a_long_report_is_whole(terminal, tmp_path):
    large = tmp_path / "large"
    subprocess.run([BUILD / "tests/support/make-recording", large, "--samples", "9000",
                    "--stacks", "3000", "--functions", "3000"], check=True)
    plain = terminal("--limit=0", "--no-pager", recording=large)
    assert terminal("--limit=0", recording=large, PAGER="/nonexistent", says="cannot be run") == plain


def test_without_a_terminal_there_is_no_pager(pathprof, example, monkeypatch):
    monkeypatch.setenv("PAGER", "echo paged")
    assert "paged" not in pathprof("report", example).stdout
