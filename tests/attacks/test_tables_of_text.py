"""CSV files with quotes without end, a million columns, other separators, doubled headers and NUL: each ends, and loses no
row in silence."""

from __future__ import annotations

from pathlib import Path

from tests.attacks.logs import SAMPLES, read_log
from tests.attacks.report import Report, counted


def attack(folder: Path, share: float) -> Report:
    """Damage each sample of a table in each way."""
    n, problems, n_tried = counted(1_000_000, share, 5_000), [], 0
    for sample in sorted(SAMPLES.glob("*.csv")):
        data = sample.read_bytes()
        header, _, body = data.partition(b"\n")
        expected = len(read_log(data, folder / sample.name).texts)
        forms = {
            "an open quote": data + b'"' + b"x," * n,
            "quotes": header + b"\n" + b'"' * n + b"\n" + body,
            "columns": header + b",x" * n + b"\n" + body,
            "many cells": data + b"," * n + b"\n",
            "semicolons": data.replace(b",", b";"),
            "tabs": data.replace(b",", b"\t"),
            "a doubled header": header + b"\n" + data,
            "doubled columns": header + b"," + header + b"\n" + body,
            "zeros": data.replace(b",", b",\0"),
            "no header": body,
            "a header alone": header + b"\n",
            "CR": data.replace(b"\n", b"\r"),
            "a quote within": data + b'a"b"c,"d"e\n',
            "commas alone": b"," * n,
            "line ends alone": b"\n" * n,
        }
        for name, content in forms.items():
            n_tried += 1
            try:
                log = read_log(content, folder / sample.name)
            except Exception as error:
                problems.append(f"{sample.name}, {name}: {type(error).__name__}: {str(error)[:150]}")
                continue
            problems += (
                [f"{sample.name}, {name}: {len(log.texts)} of {expected} texts, and not a word"]
                if not log.texts and not log.reasons and expected
                else []
            )
            problems += [f"{sample.name}, {name}: {log.seconds:.0f} s"] if log.seconds > 30 else []
    return Report(n_tried, tuple(problems))


def test_a_table_of_text_ends(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
