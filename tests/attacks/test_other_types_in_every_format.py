"""Fields of every format that are of another type than they should be: lists for texts, objects for numbers, nothing at all."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from tests.attacks.logs import changed_sample, samples, unread
from tests.attacks.report import Report, counted

VALUES: tuple[Any, ...] = (None, True, 0, -1, 1.5, 1 << 63, "", [], {}, [[]], [None], {"": None}, {"role": 1}, [{"role": []}],
    "x")
TRIALS = 400


def attack(folder: Path, share: float) -> Report:
    """Change all leaves of each sample to one value, and some of them to many."""
    def contents(path: Path) -> Any:
        for value in VALUES:
            yield f"all {value!r}", changed_sample(path, lambda leaf, value=value: value)
        for seed in range(counted(TRIALS, share, 4)):
            choose = random.Random(seed)
            yield f"some, seed {seed}", changed_sample(
                path, lambda leaf, choose=choose: choose.choice(VALUES) if choose.random() < 0.1 else leaf)

    n_tried, problems = unread(samples(share), contents, folder)
    return Report(n_tried, tuple(problems))


def test_no_type_stops_the_reading_of_a_format(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
