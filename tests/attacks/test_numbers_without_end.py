"""Numbers of thousands of digits, exponents and signs in each field of each format: each file is read, and assembled."""

from __future__ import annotations

from pathlib import Path

import pytest

from extractors.inventory import SourceFile
from extractors.reading import read
from extractors.sessions import assemble
from tests.attacks.logs import changed_sample, samples
from tests.attacks.report import Report

NUMBERS = ("9" * 5_000, "-" + "9" * 400, "1e999999", "0x" + "f" * 5_000, "1" + "_0" * 3_000, "٩" * 50, "1." + "9" * 5_000,
    "NaN", "-Infinity", "1e-400", "+" * 500, "0" * 5_000 + "1", "①", "1,000,000" * 200)


def attack(folder: Path, share: float) -> Report:
    """Write each in the place of each text, and of each number, of each sample."""
    problems, n_tried = [], 0
    for sample in samples(share, 6):
        for number in NUMBERS if share >= 0.1 else NUMBERS[::4]:
            for kind in (str, int | float):
                n_tried += 1
                path = folder / sample.name
                path.write_bytes(changed_sample(sample, lambda leaf, number=number, kind=kind: number if isinstance(leaf,
                    kind) else leaf))
                try:
                    assemble(read(SourceFile(path, path.name)).events)
                except Exception as error:
                    problems.append(f"{sample.name}, {number[:12]!r}: {type(error).__name__}: {str(error)[:150]}")
    return Report(n_tried, tuple(problems))


@pytest.mark.slow
def test_no_number_stops_the_reading(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
