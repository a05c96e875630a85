# SPDX-License-Identifier: MIT
"""The demo's program: a small log analytics pipeline, with threads and a C extension.

Chunks of a web server's log go through a pool of threads: parse, aggregate, fingerprint (the C
extension fasthash), compress. What it finds is printed. It runs some seconds; nothing in it knows
that it may be recorded.
"""

import gzip
import random
import re
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor

import fasthash

CHUNKS = 64
LINES = 6000  # of a chunk
ROUNDS = 60  # of the fingerprint: what makes the C extension work

LINE = re.compile(r'(?P<host>\S+) \[(?P<second>\d+)\] "(?P<verb>[A-Z]+) (?P<path>\S+)" '
                  r"(?P<status>\d{3}) (?P<milliseconds>\d+)")
PATHS = ["/", "/search", "/login", "/cart", "/static/app.js", "/api/items", "/api/orders"]


def write_chunk(number):
    """A chunk of the log, the same in every run."""
    draw = random.Random(number)
    lines = []
    for second in range(LINES):
        path = draw.choices(PATHS, weights=[9, 5, 2, 3, 12, 7, 4])[0]
        slow = draw.expovariate(1 / (90 if path.startswith("/api") else 15))
        lines.append(f"10.0.{draw.randrange(4)}.{draw.randrange(250)} [{second}] "
                     f'"{draw.choice(["GET", "GET", "POST"])} {path}" '
                     f"{draw.choice([200, 200, 200, 304, 404, 500])} {slow:.0f}")
    return "\n".join(lines)


def parse(text):
    for line in text.splitlines():
        match = LINE.match(line)
        if match:
            yield match.groupdict()


class Summary:
    """What a part of the log comes to."""

    def __init__(self):
        self.requests = Counter()
        self.errors = Counter()
        self.times = defaultdict(list)
        self.hosts = set()
        self.compressed_bytes = 0
        self.fingerprint = 0

    def add(self, record):
        path = record["path"]
        self.requests[path] += 1
        self.errors[path] += record["status"].startswith("5")
        self.times[path].append(int(record["milliseconds"]))
        self.hosts.add(record["host"])

    def merge(self, other):
        self.requests.update(other.requests)
        self.errors.update(other.errors)
        self.hosts |= other.hosts
        self.compressed_bytes += other.compressed_bytes
        self.fingerprint ^= other.fingerprint
        for path, times in other.times.items():
            self.times[path] += times

    def percentile(self, path, share):
        times = sorted(self.times[path])
        return times[int(share * (len(times) - 1))]


def fingerprint(data):
    return fasthash.digest(data, ROUNDS)


def compress(data):
    return len(gzip.compress(data, compresslevel=6))


def process(number):
    """One chunk through the whole pipeline."""
    text = write_chunk(number)
    summary = Summary()
    for record in parse(text):
        summary.add(record)
    data = text.encode()
    summary.fingerprint = fingerprint(data)
    summary.compressed_bytes = compress(data)
    return summary


def main():
    total = Summary()
    with ThreadPoolExecutor(max_workers=4, thread_name_prefix="worker") as pool:
        for summary in pool.map(process, range(CHUNKS)):
            total.merge(summary)
    print(f"{sum(total.requests.values())} requests from {len(total.hosts)} hosts, "
          f"{total.compressed_bytes} bytes compressed, fingerprint {total.fingerprint:016x}")
    for path, count in total.requests.most_common():
        print(f"  {path:16} {count:6} requests, {total.errors[path]:4} errors, "
              f"95 % within {total.percentile(path, 0.95)} ms")


if __name__ == "__main__":
    main()
