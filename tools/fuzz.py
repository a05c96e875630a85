#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fuzz every reader of foreign bytes, the targets of tests/fuzz, over tests/fuzz/corpus/NAME.

The committed corpus is read, never written; what the fuzzer finds new stays in build-fuzz/corpus,
an input that crashes in build-fuzz/crashes. Status 1 where one did.
"""

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build-fuzz"
MEMORY_MB = 1024


def build():
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["meson", "setup", str(BUILD), "-Dfuzz=true", "-Db_lundef=false",
                        "-Db_sanitize=address,undefined"],
                       cwd=ROOT, check=True, env=os.environ | {"CC": "clang"})
    subprocess.run(["ninja", "-C", str(BUILD), "fuzz"], cwd=ROOT, check=True)


def targets():
    return sorted(p for p in (BUILD / "tests" / "fuzz").glob("fuzz_*")
                  if p.is_file() and os.access(p, os.X_OK))


def fuzz(target, seconds):
    """Run one target over its corpus; what came of it."""
    name = target.name.removeprefix("fuzz_")
    found, crashes = BUILD / "corpus" / name, BUILD / "crashes" / name
    seeds = ROOT / "tests" / "fuzz" / "corpus" / name
    for folder in (found, crashes):
        folder.mkdir(parents=True, exist_ok=True)
    log = BUILD / f"{target.name}.log"
    with open(log, "w") as out:
        done = subprocess.run(
            [str(target), f"-max_total_time={seconds}", f"-rss_limit_mb={MEMORY_MB}", "-timeout=10",
             "-print_final_stats=1", f"-artifact_prefix={crashes}/", str(found),
             *([str(seeds)] if seeds.is_dir() else [])],
            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, check=False,
            env=os.environ | {"UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"})
    runs = [line.split()[-1] for line in log.read_text(errors="replace").splitlines()
            if line.startswith("stat::number_of_executed_units")]
    return {"target": name, "runs": int(runs[-1]) if runs else 0, "crashed": done.returncode != 0,
            "log": str(log.relative_to(ROOT))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("targets", nargs="*", help="names of targets; all if none is given")
    options = parser.parse_args()
    (BUILD / "results.json").unlink(missing_ok=True)
    build()
    chosen = [t for t in targets()
              if not options.targets or t.name.removeprefix("fuzz_") in options.targets]
    if not chosen:
        sys.exit("no fuzz target was built")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda t: fuzz(t, options.seconds), chosen))
    for result in results:
        verdict = f"CRASHED: {result['log']}" if result["crashed"] else "no crash"
        print(f"{result['target']:16} {result['runs']:10} runs  {verdict}")
    (BUILD / "results.json").write_text(json.dumps(results))
    return any(result["crashed"] for result in results)


if __name__ == "__main__":
    sys.exit(main())
