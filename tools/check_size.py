#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Budgets: lines of a function and a file, parameters of a function, #if in the whole tree."""

import ast
import re

import gate

FUNCTION_LINES = 70
FILE_LINES = 800
PARAMETERS = 5
CONDITIONS_PER_1000_LINES = 5

CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:el)?if(?:def|ndef)?\b(?![^\n]*_H$)", re.MULTILINE)
NAME = re.compile(r"(\w+)\s*\(")


def signature_above(lines, brace):
    """The first line of the signature whose function's brace is at this line."""
    first = brace
    while first > 0 and lines[first - 1].strip() and lines[first - 1][-1] not in ";}/" \
            and not lines[first - 1].startswith("#"):
        first -= 1
    return first


def count_parameters(signature):
    """Parameters of a C signature: what its first parentheses hold, attributes left out."""
    signature = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", signature)
    depth, commas, inside = 0, 0, ""
    for letter in signature[signature.find("("):]:
        depth += (letter == "(") - (letter == ")")
        commas += letter == "," and depth == 1
        inside += letter
        if depth == 0:
            break
    return 0 if inside[1:-1].strip() in ("", "void") else commas + 1


def c_functions(text):
    """(name, first line, lines, parameters) of each function of C in kernel style: a brace alone in
    the first column opens it, another closes it."""
    lines = gate.c_code(text).split("\n")
    opened = None
    for number, line in enumerate(lines):
        if line == "{":
            opened = number
        elif line == "}" and opened is not None:
            first = signature_above(lines, opened)
            signature = " ".join(lines[first:opened])
            name = NAME.search(signature)
            yield (name.group(1) if name else "?", first + 1, number - first + 1,
                   count_parameters(signature))
            opened = None


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1, 0


def over_budget(name, path, text):
    """(place for the exceptions, measure, line, complaint) of what is too large in a file."""
    total = text.count("\n")
    if total > FILE_LINES:
        yield name, "file", None, f"{total} lines, at most {FILE_LINES}"
    functions = {".c": c_functions, ".h": c_functions, ".py": python_functions}.get(path.suffix)
    for function, line, length, parameters in functions(text) if functions else ():
        if length > FUNCTION_LINES:
            yield (f"{name}:{function}", "function", line,
                   f"{function} has {length} lines, at most {FUNCTION_LINES}")
        if parameters > PARAMETERS and path.suffix == ".c" and name.startswith("src/"):
            yield (f"{name}:{function}", "parameters", line,
                   f"{function} has {parameters} parameters, at most {PARAMETERS}")


def check(root):
    complaints = []
    allowed = gate.exceptions(root, "size")
    needed = set()
    lines = conditions = 0
    for path in gate.tree_files(root, ".c", ".h", ".py", ".js", ".mjs", ".ts", ".css", ".sh"):
        text, name = path.read_text(), gate.place(root, path)
        if name.startswith("src/"):
            lines += text.count("\n")
            conditions += len(CONDITION.findall(gate.c_code(text)))
        for key, measure, line, complaint in over_budget(name, path, text):
            if (key, measure) in allowed:
                needed.add((key, measure))
            else:
                complaints.append(f"{gate.place(root, path, line)}: {complaint}")
    if conditions * 1000 > CONDITIONS_PER_1000_LINES * lines:
        complaints.append(f"src: {conditions} #if in {lines} lines, at most "
                          f"{CONDITIONS_PER_1000_LINES} per 1000")
    complaints += [f"tools/exceptions: size {key} {measure}: not needed"
                   for key, measure in allowed.keys() - needed]
    return complaints


if __name__ == "__main__":
    gate.main(check)
