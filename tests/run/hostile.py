# SPDX-License-Identifier: MIT
"""What the tests of hostile surroundings share."""

import re
import subprocess

from conftest import SECONDS


def nr_samples(directory):
    """Samples that babeltrace2 reads. Its one word is about losses, which the manifest has too."""
    done = subprocess.run(["babeltrace2", directory / "ust"], text=True, capture_output=True,
                          timeout=SECONDS, check=False)
    others = [line for line in done.stderr.splitlines()
              if not re.match("WARNING: Tracer (may have )?discarded", line)]
    assert (done.returncode, others) == (0, []), done.stderr
    return sum(" sample" in line for line in done.stdout.splitlines())
