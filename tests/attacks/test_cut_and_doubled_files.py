"""Files of every format that are cut anywhere, appended to themselves, shuffled, or mixed with another format."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from tests.attacks.logs import SAMPLES, samples, unread
from tests.attacks.report import Report, counted

CUTS = 200


def contents(path: Path, n_cuts: int) -> Iterator[tuple[str, bytes]]:
    """Yield damaged forms of a sample."""
    data, choose = path.read_bytes(), random.Random(path.name)
    for at in sorted(choose.sample(range(len(data)), min(n_cuts, len(data)))):
        yield f"cut at {at}", data[:at]
        yield f"begun at {at}", data[at:]
        yield f"a byte at {at}", data[:at] + bytes([choose.randrange(256)]) + data[at + 1:]
    lines = data.splitlines(keepends=True)
    yield "twice", data + data
    yield "shuffled", b"".join(choose.sample(lines, len(lines)))
    other = choose.choice(sorted(each for each in SAMPLES.iterdir() if each.is_file()))
    yield f"with {other.name}", data + other.read_bytes()


def attack(folder: Path, share: float) -> Report:
    """Damage each sample."""
    n_tried, problems = unread(samples(share), lambda path: contents(path, counted(CUTS, share, 3)), folder)
    return Report(n_tried, tuple(problems))


def test_no_damage_stops_the_reading_of_a_format(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
