"""Parquet tables of every type, with columns of hostile names, doubled ones, extremes and nothing: each is read, or refused
by name."""

from __future__ import annotations

import datetime
import io
from pathlib import Path

import polars as pl

from tests.attacks.logs import read_log
from tests.attacks.report import Report


def tables() -> dict[str, bytes]:
    """Return tables."""
    base = {"session_id": ["a", "a"], "role": ["user", "assistant"], "content": ["hi", "ho"]}
    frames = {
        "names": pl.DataFrame({**base, "'; drop": [1, 2], "": [1, 2], "a\nb": [1, 2], "\u202e": [1, 2], "__class__": [1, 2],
        "a.b": [1, 2]}),
        "instants": pl.DataFrame({**base, "timestamp": [datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59,
        999999)]}),
        "durations": pl.DataFrame({**base, "latency": [datetime.timedelta(days=-999_999), datetime.timedelta(days=99_999)]}),
        "dates": pl.DataFrame({**base, "timestamp": [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)],
        "time": [datetime.time(0), datetime.time(23, 59, 59)]}),
        "numbers": pl.DataFrame({**base, "n": [float("nan"), float("inf")], "big": [2 ** 63 - 1, -2 ** 63],
        "u": pl.Series([2 ** 64 - 1, 0], dtype=pl.UInt64)}),
        "decimals": pl.DataFrame({**base, "amount": pl.Series(["1.10", "99999999999999.99"]).cast(pl.Decimal(30, 2))}),
        "bytes": pl.DataFrame({**base, "payload": [b"\xff\x00", b""]}),
        "categories": pl.DataFrame(base).with_columns(pl.col("role").cast(pl.Categorical)),
        "records": pl.DataFrame({**base, "metadata": [{"a": {"b": [1, None]}}, {"a": None}]}),
        "lists": pl.DataFrame({**base, "tags": [[["x"]], []]}),
        "nothing": pl.DataFrame({**base, "x": pl.Series([None, None], dtype=pl.Null)}), "no rows": pl.DataFrame(base).clear(),
        "no columns": pl.DataFrame(),
        "a list of messages": pl.DataFrame({"id": ["a"], "messages": [[{"role": "user", "content": "hi"}, {"role": "assistant",
        "content": "ho"}]]})}
    files = {}
    for name, table in frames.items():
        buffer = io.BytesIO()
        table.write_parquet(buffer)
        files[name] = buffer.getvalue()
    whole = files["names"]
    return {**files, "cut": whole[:-20], "its end alone": b"PAR1" + whole[-30:], "twice": whole + whole,
        "no length": whole[:-8] + b"\xff\xff\xff\x7fPAR1"}


def attack(folder: Path, share: float) -> Report:
    """Read each."""
    problems, files = [], tables()
    for name, content in files.items():
        try:
            log = read_log(content, folder / "log.parquet")
        except Exception as error:
            problems.append(f"{name}: {type(error).__name__}: {str(error)[:150]}")
            continue
        problems += [f"{name}: it vanishes"] if not log.texts and not log.reasons else []
        problems += [f"{name}: {log.peak_mb:.0f} MB"] if log.peak_mb > 300 else []
    return Report(len(files), tuple(problems))


def test_every_table_is_read_or_named(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
