# SPDX-License-Identifier: MIT
"""Each gate passes a tree that is right and fails, with the place, one that is wrong."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

# pylint: disable=wrong-import-position
import check_docs
import check_layers
import check_man
import check_size
import check_symbols
import check_tidy
import check_words

LICENCE = "/* SPDX-License-Identifier: MIT */\n"

ARCHITECTURE = """
| room | holds | may include |
| --- | --- | --- |
| `core/base` | words | - |
| `agent/guard` | more words | `core/base` |
| `tool/recorder` | words | `core/base` `agent/guard` |

From `agent/guard` the recorder may include `handshake.h` alone.

```
{ "version": 1, "lost": { REASON: N }, "name": "monotonic", "problem": null|"..." }
```
"""

CTF = """/*
 * DEFINITIONS (stream class 1)
 *   id 0 "code"    id u32, name string,
 *                  line_table u8[length]
 *   id 3 "thread"  slot u32
 * Strings are UTF-8 without NUL
 */
"""

RECORD = LICENCE + """
static const struct option_spec options[] = {
	{'o', "output", OPTION_STRING, "DIR", "Where {to}", &output},
	{0, "json", OPTION_FLAG, NULL, "As --text, not", &json}, /* {0, "ghost", ...} */
	{0},
};
"""

COMMON_PAGE = "".join(f".TP\n.B {name}\nText.\n" for name in sorted(check_docs.COMMON))

TREE = {
    "ARCHITECTURE.md": ARCHITECTURE,
    "src/core/base/a.h": LICENCE,
    "src/core/event/ctf.h": CTF,
    "src/core/event/event.h": '	X(LOSS_DISK, "disk", "words")\n',
    "src/agent/guard/handshake.h": LICENCE + '#include "core/base/a.h"\n',
    "src/agent/guard/inner.h": LICENCE,
    "src/tool/recorder/r.c": LICENCE + '#include "agent/guard/handshake.h"\n',
    "src/tool/cli/main.c": '	{"record", cmd_record, "Run"},\n	{"export", cmd_export, "X"},\n',
    "src/tool/cli/export.c": LICENCE,
    "src/tool/cli/record.c": RECORD,
    "docs/man/pathprof.1": ".TH X 1\n.SH NAME\nx \\- y\n" + COMMON_PAGE
                           + ".BR pathprof-record (1)\n.BR pathprof-export (1)\n",
    "docs/man/pathprof-export.1": ".TH X 1\n.SH FORMATS\n.TP\n.B text\nwords\n.SH SEE\n.TP\nx\n",
    "src/tool/render/text.c": 'const struct exporter text_exporter = {\n\t"text",\n',
    "docs/man/pathprof-record.1": ".TH X 1\n.SH NAME\nx \\- y\n"
                                  ".TP\n.BR \\-o \", \" \\-\\-output = \\fIDIR\\fR\nText\n"
                                  ".TP\n.B \\-\\-json\nLike \\-\\-text.\n",
    "docs/man/pathprof-recording.5": ".TH X 5\n.SH NAME\nx \\- y\ncode id name line_table thread "
                                     "slot disk version lost problem\n",
    "docs/completion/pathprof.bash": "	record) options='-o --output --json' ;;\n"
                                     "	export) options='' ;;\n	--format) echo 'text' ;;\n",
}


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def tree(tmp_path):
    write(tmp_path, TREE)
    return tmp_path


def complaints(gate, tree, files):
    write(tree, files)
    return gate.check(tree)


def layers(tree):
    """check_layers without its complaint that the rest of TREE is in no room."""
    return [c for c in check_layers.check(tree) if "stands in no room" not in c]


def test_layers__allowed_edges_pass(tree):
    assert layers(tree) == []


@pytest.mark.parametrize("name, header, words", [
    ("src/core/base/a.c", "agent/guard/inner.h", "core/base may not include agent/guard"),
    ("src/tool/recorder/r.c", "agent/guard/inner.h", "agent/guard/handshake.h alone"),
    ("src/tool/recorder/r.c", "inner.h", "in no room"),
])
def test_layers__other_edges_fail(tree, name, header, words):
    write(tree, {name: f'{LICENCE}#include "{header}"\n'})
    found = layers(tree)
    assert len(found) == 1 and found[0].startswith(f"{name}:2: ") and words in found[0]


def test_layers__commented_include_passes(tree):
    write(tree, {"src/core/base/a.c": '/* #include "agent/guard/inner.h" */\n'})
    assert layers(tree) == []


def test_layers__file_outside_rooms_fails(tree):
    write(tree, {"src/utils/x.c": '#include "core/base/a.h"\n'})
    assert any("src/utils/x.c:1: stands in no room" in c for c in check_layers.check(tree))


def function(lines, parameters="void"):
    return f"static int f({parameters})\n{{\n" + "\tg();\n" * (lines - 3) + "}\n"


def test_size__budgets_pass(tree):
    files = {"src/core/base/a.c": function(70, "int a, int b, int c, int d, int (*e)(int, int)")
             + "\n" * 700}
    assert complaints(check_size, tree, files) == []


@pytest.mark.parametrize("text, words", [
    (function(71), "a.c:1: f has 71 lines"),
    (function(3, "int a,\n\t int b, int c, int d, int e, int f"), "f has 6 parameters"),
    ("\n" * 801, "a.c: 801 lines"),
    ("#if A\n#endif\n" * 9, "9 #if in"),
])
def test_size__over_budget_fails(tree, text, words):
    found = complaints(check_size, tree, {"src/core/base/a.c": text})
    assert len(found) == 1 and words in found[0]


def test_size__include_guard_is_no_condition(tree):
    files = {f"src/core/base/a{i}.h": f"#ifndef A{i}_H\n#define A{i}_H\n#endif\n" for i in range(9)}
    assert complaints(check_size, tree, files) == []


def test_size__python_function_fails(tree):
    text = "def f():\n" + "    g()\n" * 70
    assert "f has 71 lines" in complaints(check_size, tree, {"tools/x.py": text})[0]


def test_size__exception_holds_and_must_be_needed(tree):
    write(tree, {"tools/exceptions": "size src/core/base/a.c:f function one switch\n",
                 "src/core/base/a.c": function(90)})
    assert check_size.check(tree) == []
    found = complaints(check_size, tree, {"src/core/base/a.c": function(9)})
    assert found == ["tools/exceptions: size src/core/base/a.c:f function: not needed"]


def words(tree, name, text):
    return [c for c in complaints(check_words, tree, {name: text}) if c.startswith(name)]


@pytest.mark.parametrize("name, text, word", [
    ("src/tool/trace/x.c", "strcpy(a, b);", "strcpy"),
    ("src/agent/guard/x.c", "p = malloc(3);", "malloc"),
    ("src/agent/guard/x.c", "printf (3);", "printf"),
    ("src/agent/capture/x.c", "pthread_mutex_lock(&m);", "pthread_mutex_lock"),
    ("src/tool/trace/x.c", "exit(1);", "exit"),
    ("src/tool/trace/x.c", "fputs(a, stderr);", "stderr"),
    ("src/tool/trace/x.c", "typedef struct x x;", "typedef struct"),
    ("src/tool/cli/x.c", "f(); // why", "//"),
])
def test_words__forbidden_fail(tree, name, text, word):
    found = words(tree, name, f"{LICENCE}{text}\n")
    assert found and all(c.startswith(f"{name}:2: {word}: ") for c in found)


@pytest.mark.parametrize("name, text", [
    ("src/tool/trace/x.c", "p = malloc(3); _exit(1); pthread_exit(NULL); fprintf(out, s);"),
    ("src/tool/cli/x.c", 'puts("http://x"); fputs(s, stderr);'),
    ("src/agent/capture/x.c", '/* malloc(), stderr and // */ f("strcpy(");'),
    ("src/agent/capture/x_test.c", "p = malloc(3);"),
    ("src/agent/guard/x.c", "ops->free(p); o.malloc(p); my_free(p);"),
])
def test_words__others_pass(tree, name, text):
    assert words(tree, name, f"{LICENCE}{text}\n") == []


@pytest.mark.parametrize("name, text", [
    ("src/tool/trace/x.c", "int x;\n"), ("tools/x", "#!/bin/sh\n"), ("web/x.js", "f()\n")])
def test_words__missing_licence_fails(tree, name, text):
    assert words(tree, name, text)[0].startswith(f"{name}:1: no line with SPDX")


@pytest.mark.parametrize("name", ["src/tool/trace/x.c", "NEWS.md", "Makefile"])
def test_words__unfinished_merge_fails(tree, name):
    assert words(tree, name, f"{LICENCE}{'<' * 7} HEAD\na\n") == [
        f"{name}:2: a merge was left unfinished here"]


def test_docs__agreeing_tree_passes(tree):
    assert check_docs.check(tree) == []


@pytest.mark.parametrize("name, old, new, words", [
    ("src/tool/cli/record.c", '"json"', '"yaml"', "pathprof-record.1: lacks --yaml"),
    ("src/tool/cli/record.c", '"json"', '"yaml"', "pathprof.bash: lacks --yaml"),
    ("src/tool/cli/record.c", '"json"', '"yaml"', "pathprof-record.1: has --json"),
    ("src/tool/cli/record.c", "'o'", "'O'", "pathprof-record.1: lacks -O"),
    ("docs/completion/pathprof.bash", "--json", "", "pathprof.bash: lacks --json"),
    ("docs/completion/pathprof.bash", "--json", "--json --x", "pathprof.bash: has --x"),
    ("src/tool/cli/main.c", '"record"', '"play"', "play.c: does not exist"),
    ("src/tool/cli/main.c", '"record"', '"play"', "pathprof.bash: lacks play"),
    ("docs/man/pathprof.1", "pathprof-record", "x", "does not name pathprof-record(1)"),
    ("docs/man/pathprof.1", ".B --color", ".B --x", "lacks --color"),
    ("docs/man/pathprof-export.1", ".B text", ".B tex", "pathprof-export.1: lacks text"),
    ("docs/man/pathprof-export.1", ".B text", ".B tex", "pathprof-export.1: has tex"),
    ("docs/completion/pathprof.bash", "'text'", "''", "pathprof.bash: lacks text"),
    ("docs/man/pathprof-recording.5", "slot", "", "lacks slot (ctf.h, thread)"),
    ("docs/man/pathprof-recording.5", "line_table", "", "lacks line_table (ctf.h, code)"),
    ("docs/man/pathprof-recording.5", "disk", "", "lacks disk (event.h)"),
    ("docs/man/pathprof-recording.5", "problem", "", "lacks problem (ARCHITECTURE.md"),
])
def test_docs__drift_fails(tree, name, old, new, words):
    assert old in TREE[name]
    found = complaints(check_docs, tree, {name: TREE[name].replace(old, new)})
    assert any(words in c for c in found), found


def test_man__clean_page_passes_and_warning_fails(tree):
    assert check_man.check(tree) == []
    found = complaints(check_man, tree, {"docs/man/bad.1": ".TH X 1\n.SH NAME\n.XY no macro\n"})
    assert any("docs/man/bad.1" in c and "XY" in c for c in found)


@pytest.fixture
def agent(tmp_path):
    """A function that builds a library in the agent's place, with a version script for it."""
    def build(exported, listed, *more):
        write(tmp_path, {"a.c": "".join(f"void {name}(void) {{}}\n" for name in exported),
                         "src/agent/agent.map":
                         "/* x; */ {\n global:\n" + "".join(f"  {n};\n" for n in listed)
                         + " local: *;\n};\n"})
        library = tmp_path / check_symbols.AGENT
        library.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-shared", "-fPIC", "-Wl,--no-as-needed", "-o", library,
                        tmp_path / "a.c", *more], check=True)
        return tmp_path
    return build


def test_symbols__agreement_passes(agent):
    assert check_symbols.check(agent(["f", "g"], ["f", "g"])) == []


@pytest.mark.parametrize("exported, listed, more, words", [
    (["f", "g"], ["f"], [], "does not list g"),
    (["f"], ["f", "g"], [], "lists g, which"),
    (["f"], ["f"], ["-lm"], "needs libm.so.6"),
])
def test_symbols__difference_fails(agent, exported, listed, more, words):
    found = check_symbols.check(agent(exported, listed, *more))
    assert len(found) == 1 and words in found[0]


def tidied(tree, text):
    write(tree, {"src/a.c": text, ".clang-tidy": (TOOLS.parent / ".clang-tidy").read_text()})
    write(tree, {"build-clang/compile_commands.json": json.dumps(
        [{"directory": str(tree / "build-clang"), "command": "clang -c ../src/a.c",
          "file": "../src/a.c"}])})
    return check_tidy.check(tree)


def test_tidy__clean_source_passes_and_bug_fails(tree):
    assert check_tidy.check(tree) == ["build-clang: not built"]
    assert tidied(tree, "int f(int a);\nint f(int a)\n{\n\treturn a;\n}\n") == []
    found = tidied(tree, "int f(void);\nint f(void)\n{\n\tint *p = 0;\n\treturn *p;\n}\n")
    assert any(c.startswith("src/a.c:5:") for c in found)


@pytest.mark.parametrize("name", ["tidy", "layers", "size", "words", "docs", "man", "symbols"])
def test_gates__program_fails_on_a_wrong_tree(tree, name):
    shutil.rmtree(tree / "docs")
    write(tree, {"src/core/base/a.c": '#include "agent/guard/inner.h"\n' + function(99),
                 "docs/man/bad.1": ".XY\n"})
    done = subprocess.run([sys.executable, TOOLS / f"check_{name}.py", tree], check=False,
                          capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout.count("\n") >= 1 and done.stderr == ""
