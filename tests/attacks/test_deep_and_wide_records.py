"""Records of great depth, width and numbers between honest ones: only they are lost, each with its reason."""

from __future__ import annotations

import json
from pathlib import Path

from tests.attacks.logs import conversation, read_log
from tests.attacks.report import Report, counted


def hostile(n: int) -> dict[str, bytes]:
    """Return lines that parsers stumble over; `n` is their size."""
    begin = b'{"session_id":"s9","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],"x":'
    return {
        "objects": begin + b'{"a":' * n + b"1" + b"}" * n + b"}", "lists": begin + b"[" * n + b"]" * n + b"}",
        "open lists": b"[" * n, "open objects": b'{"a":' * n, "closed too often": begin + b"1}" + b"}" * n,
        "digits": begin + b"9" * n + b"}", "exponent": begin + b"1e999999}", "fraction": begin + b"0." + b"1" * n + b"}",
        "negative zero": begin + b"-0}", "keys": begin + json.dumps({f"k{k}": k for k in range(n // 10)}).encode() + b"}",
        "one key": begin + b"{" + b",".join([b'"a":1'] * (n // 10)) + b"}}", "escapes": begin + b'"' + b"\\u0000" * n + b'"}',
        "halves": begin + b'"' + b"\\ud800" * n + b'"}', "texts in texts": begin + json.dumps(nested(40)).encode() + b"}"}


def nested(depth: int) -> str:
    """Return JSON in JSON: each level doubles the backslashes of the one before."""
    text = "1"
    for _ in range(min(depth, 14)):
        text = json.dumps({"t": text})
    return text


def attack(folder: Path, share: float) -> Report:
    """Read each between two honest lines."""
    problems = []
    lines = hostile(counted(1_000_000, share, 20_000))
    for name, line in lines.items():
        log = read_log(conversation(1, "first") + line + b"\n" + conversation(2, "last"), folder / "log.jsonl")
        missing = {"first", "last"} - set(log.texts)
        problems += [f"{name}: {sorted(missing)} are lost: {log.reasons}"] if missing else []
        problems += [f"{name}: it vanishes"] if "q" not in log.texts and not log.reasons else []
        problems += [f"{name}: {log.seconds:.0f} s"] if log.seconds > 30 else []
    return Report(len(lines), tuple(problems))


def test_a_record_that_no_parser_takes_costs_itself_alone(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
