"""Copies of `retail_desk` for the benchmark of scale: each is the next fortnight of the same desk, with customers of its own.

In: the folder of the set. Out: a folder with the logs of n copies, the first as it is. In a copy every session, call, customer,
order and means of payment has an id of its own, every address a zip code of its own, and every day is fourteen days later. What
all copies share (the tools, the goods on sale) stands in the first alone. Dealt to several services, a copy's sessions are of
the service of its number, whose tools have names of its own: eight services have 120. `truth` is neither read nor written; the
same sessions as OTLP are left.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from pathlib import Path

from benchmarks.nightly import with_tools_of

DAYS = 14
"""Length of the set."""
_SECONDS = DAYS * 86_400
_LATER = 10_000_000
_TOKEN = re.compile(
    r'(?P<second>(?<="created": )\d{10})|(?P<millisecond>(?<="ts_ms": )\d{13})|(?P<sequence>(?<="lsn": )\d+)'
    r"|(?P<call>(?<=call_)[0-9a-f]{2}(?=[0-9a-f]{18}\b))|(?P<session>\b[0-9a-f]{2}(?=[0-9a-f]{14}\b))"
    r"|(?P<instant>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)|(?P<named>(?<=[a-z]_)\d{4,7}\b|(?<=W)\d{7}\b|(?<=[a-z])\d+(?=@))"
    r"|(?P<zip>(?<![\w.-])\d{5}(?![\w.-]))")


def write(data: Path, folder: Path, n_copies: int, n_days: int = DAYS, n_services: int = 1) -> Path:
    """`n_copies` of the set's first `n_days` days under `folder`, dealt to `n_services`."""
    folder.mkdir(parents=True)
    tools = json.loads((data / "tools.json").read_bytes())
    services = [None] if n_services == 1 else [f"desk-{number}" for number in range(n_services)]
    every = [tool for service in services for tool in (tools if service is None else with_tools_of(service, tools))]
    (folder / "tools.json").write_text(json.dumps(every), "utf-8")
    for kind in ("logs", "feedback", "cdc"):
        (folder / kind).mkdir()
        for source in sorted((data / kind).iterdir())[:n_days]:
            for copy in range(n_copies):
                day = date.fromisoformat(source.stem) + timedelta(copy * DAYS)
                service = services[copy % n_services] if kind == "logs" else None
                with source.open() as lines, (folder / kind / f"{copy:02d}-{day}{source.suffix}").open("w") as made:
                    copied = lines if copy == 0 else _renamed(lines, copy, kind == "cdc")
                    made.writelines(copied if service is None else (_of_service(line, service) for line in copied))
    return folder


def _of_service(line: str, service: str) -> str:
    """Return a completion as the service has it."""
    row = with_tools_of(service, json.loads(line))
    row["metadata"]["app"] = service
    return json.dumps(row) + "\n"


def _renamed(lines: Iterator[str], copy: int, of_rows: bool) -> Iterator[str]:
    rename = _renaming(copy)
    for line in lines:
        made = _TOKEN.sub(rename, line)
        if not (of_rows and '"op": "r"' in line and _row(made) == _row(line)):
            yield made


def _row(line: str) -> str:
    """Return a snapshot's row without the instant at which it was seen."""
    return line.split('"op": "r"')[0]


def _renaming(copy: int) -> Callable[[re.Match[str]], str]:
    kinds: dict[str, Callable[[str], str]] = {
        "second": lambda text: str(int(text) + copy * _SECONDS),
        "millisecond": lambda text: str(int(text) + copy * _SECONDS * 1000),
        "sequence": lambda text: str(int(text) + copy * _LATER),
        "call": lambda text: f"{(int(text, 16) + copy) % 256:02x}",
        "session": lambda text: f"{(int(text, 16) + copy) % 256:02x}",
        "instant": lambda text: (datetime.fromisoformat(text) + timedelta(copy * DAYS)).isoformat(),
        "named": lambda text: f"{text}{copy:02d}",
        "zip": lambda text: f"{(int(text) + 7919 * copy) % 100_000:05d}"}

    def rename(match: re.Match[str]) -> str:
        assert match.lastgroup is not None
        return kinds[match.lastgroup](match[0])

    return rename
