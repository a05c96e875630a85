# SPDX-License-Identifier: MIT
"""Code of CPython's JIT keeps its position back: such samples are counted."""

PROGRAM = """
def work(n):
    x = 3
    for i in range(n):
        x = (x + i) & 1023
        x = (x + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1) & 1023
    return x

work(3_000_000)
"""


def test_jit__samples_in_its_code_are_counted(python, tmp_path, record, report):
    script = tmp_path / "work.py"
    script.write_text(PROGRAM)
    done, recording = record([python, script], "-e", "cpu-time")
    assert done.returncode == 0, done.stderr
    result = report(recording)
    counted = result["degraded"].pop("jit_position", 0)
    if python.environment.get("PYTHON_JIT") == "1":
        assert counted > result["samples"] / 2
        assert "jit_position" in done.stderr
    else:
        assert counted == 0
    assert result["degraded"] == {}
