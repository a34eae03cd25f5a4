"""Damaged log files, the same for the same seed, and what the reader makes of them.

`python -m tests.extractors.mutations SEED FIRST COUNT [FOLDER]` reads COUNT files and prints a line of JSON with what crashed,
hung or vanished and the peak of memory; FOLDER: more files to damage. `… SEED NUMBER 1` reads one of them again and leaves it
at the path that it prints.
"""

from __future__ import annotations

import faulthandler
import gzip
import io
import random
import resource
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import zstandard

from extractors.formats import registered
from extractors.inventory import SourceFile
from extractors.reading import read
from extractors.sessions import assemble
from tests.extractors.formats.accounts import problems_of

TIMEOUT_S = 20
_ASSEMBLE_EACH = 10
_BOMB = 48 << 20
Mutation = Callable[[random.Random, bytes], bytes]


def mutated(seed: int, number: int, originals: list[tuple[str, bytes]]) -> tuple[str, bytes]:
    """Damaged file `number`, and what was done to it."""
    rng = random.Random(f"{seed}:{number}")
    name, held = rng.choice(originals)
    steps = [name]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        mutation = rng.choices(list(_MUTATIONS), weights=list(_MUTATIONS.values()))[0]
        steps.append(mutation.__name__.strip("_"))
        held = mutation(rng, held)
    return " > ".join(steps), held


def run(seed: int, first: int, count: int, folder: Path | None = None) -> dict[str, Any]:
    """Read damaged files; what went wrong, by the number of the file."""
    originals = [(each.name, each.sample()) for each in registered()]
    if folder is not None:
        originals += [(path.name, path.read_bytes()) for path in sorted(folder.rglob("*"))
                      if path.is_file() and path.stat().st_size < 1 << 16]
    wrong: list[dict[str, Any]] = []
    slowest = (0.0, "")
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "damaged.log"
        for number in range(first, first + count):
            what, held = mutated(seed, number, originals)
            path.write_bytes(held)
            began = time.process_time()
            problem = _problem(path, number)
            slowest = max(slowest, (time.process_time() - began, f"{number}: {what}"))
            if problem is not None:
                wrong.append({"number": number, "what": what, "problem": problem})
    return {"count": count, "wrong": wrong, "slowest": slowest, "peak_mib": _peak_mib()}


def _peak_mib() -> int:
    """Return the peak of this process alone: what `getrusage` gives includes that of the process which started it."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) >> 10


def _problem(path: Path, number: int) -> str | None:
    faulthandler.dump_traceback_later(30 * TIMEOUT_S, exit=True)
    signal.setitimer(signal.ITIMER_PROF, TIMEOUT_S)   # of a processor: how busy the machine is does not count
    try:
        found = read(SourceFile(path, path.name))
        if number % _ASSEMBLE_EACH == 0:
            assemble(found.events, found.declarations)
        return "; ".join(problems_of(found)) or None
    except (Exception, pl.exceptions.PanicException):   # whatever it is, it is what we look for
        return traceback.format_exc(limit=-4)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()


def _cut(rng: random.Random, held: bytes) -> bytes:
    return held[:rng.randrange(len(held) + 1)]


def _take_out(rng: random.Random, held: bytes) -> bytes:
    at = rng.randrange(len(held) + 1)
    return held[:at] + held[at + rng.randrange(1, 64):]


def _flip(rng: random.Random, held: bytes) -> bytes:
    changed = bytearray(held)
    for _ in range(min(len(changed), rng.choice((1, 4, 64)))):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _insert(rng: random.Random, held: bytes) -> bytes:
    at = rng.randrange(len(held) + 1)
    return held[:at] + rng.choice(_STRANGE) + held[at:]


def _shuffle_lines(rng: random.Random, held: bytes) -> bytes:
    lines = held.split(b"\n")
    rng.shuffle(lines)
    return b"\n".join(lines + lines[:rng.randrange(3)])


def _mix(rng: random.Random, held: bytes) -> bytes:
    lines, others = held.split(b"\n"), _other(rng).split(b"\n")
    at = rng.randrange(len(lines) + 1)
    return b"\n".join(lines[:at] + others[:rng.randrange(1, 4)] + lines[at:])


def _wrong_type(rng: random.Random, held: bytes) -> bytes:
    """One value of a JSON record, or of the whole document, becomes something else."""
    lines = held.split(b"\n")
    at = rng.randrange(len(lines))
    for whole in (False, True):
        try:
            value = orjson.loads(held if whole else lines[at])
        except orjson.JSONDecodeError:
            continue
        place: Any = [value]
        key: Any = 0
        while isinstance(place[key], (dict, list)) and place[key] and rng.random() < 0.85:
            place = place[key]
            key = rng.choice(list(place)) if isinstance(place, dict) else rng.randrange(len(place))
        place[key] = rng.choice(_VALUES)
        made = orjson.dumps(value)
        return made if whole else b"\n".join([*lines[:at], made, *lines[at + 1:]])
    return _flip(rng, held)


def _deep(rng: random.Random, held: bytes) -> bytes:
    """Return a string becomes a value nested so deep that a recursive reader falls."""
    at = held.find(b'"', rng.randrange(len(held) + 1))
    depth = rng.choice((200, 300, 1100, 20_000))
    opened, closed = rng.choice(((b"[", b"]"), (b'{"a":', b"}")))
    return held if at < 0 else held[:at] + opened * depth + b"1" + closed * depth + b"," + held[at:]


def _digits(rng: random.Random, held: bytes) -> bytes:
    places = [at for at, each in enumerate(held) if 48 <= each <= 57]
    if not places:
        return held
    at = rng.choice(places)
    return held[:at] + rng.choice((b"9" * 400, b"-1", b"1e999", b"0.1e-400", b"18446744073709551616", b"NaN")) + held[at + 1:]


def _twice_keyed(rng: random.Random, held: bytes) -> bytes:
    at = held.find(b"{", rng.randrange(len(held) + 1))
    end = held.find(b'":', at)
    key = held[at + 1:end + 1] if 0 <= at < end and end - at < 60 else b'"a"'
    return held if at < 0 else held[:at + 1] + key + b":" + orjson.dumps(rng.choice(_VALUES[:6])) + b"," + held[at + 1:]


def _long_line(rng: random.Random, held: bytes) -> bytes:
    at = rng.randrange(len(held) + 1)
    return held[:at] + rng.choice((b"a", b" ", b"\\", b'"', b"[", b"<", b",", b"0", b"\xf0", b"=x ")) * rng.choice(
        (1 << 12, 1 << 16, 1 << 19)) + held[at:]


def _packed(rng: random.Random, held: bytes) -> bytes:
    made = rng.choice((_gzip, zstandard.compress, _zip, _bom, _utf_16))(held)
    return made if rng.random() < 0.5 else _flip(rng, made)


def _gzip(held: bytes) -> bytes:
    return gzip.compress(held, mtime=0)


def _undated(name: str) -> zipfile.ZipInfo:
    """Name an entry of an archive without the time of day: a seed gives the same damage at any time."""
    return zipfile.ZipInfo(name)


def _zip(held: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("../../../etc/passwd.json", "/abs.json", "samples/1_epoch_1.json", "header.json", "a/../b.json", ""):
            archive.writestr(_undated(name or "\u202e.json"), held, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def _bom(held: bytes) -> bytes:
    return b"\xef\xbb\xbf" + held


def _utf_16(held: bytes) -> bytes:
    return held.decode("utf-8", "replace").encode("utf-16")


def _database(rng: random.Random, held: bytes) -> bytes:
    connection = sqlite3.connect(":memory:")
    for table in rng.sample(["event", "object", "event_object", 'a "b"', "event_map_type", "object_map_type", "x"], 4):
        connection.execute('create table "{}" (ocel_id, ocel_type, "a""b", ocel_time)'.format(table.replace('"', '""')))
        connection.execute('insert into "{}" values (?, ?, ?, ?)'.format(table.replace('"', '""')),
                           (held[:40], 1, None, held[:20].decode("utf-8", "replace")))
    made = connection.serialize()
    connection.close()
    return made if rng.random() < 0.5 else _flip(rng, made)


def _bomb(rng: random.Random, held: bytes) -> bytes:
    return _bombs()[rng.randrange(4)]


@cache
def _bombs() -> list[bytes]:
    """48 MiB each, of which little is seen from outside."""
    zeros, lines = b"\0" * _BOMB, b'{"a":1}\n' * (_BOMB >> 6)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(_undated("samples/a.json"), zeros, zipfile.ZIP_DEFLATED)
    return [_gzip(zeros), zstandard.compress(zeros), archive.getvalue(), _gzip(_gzip(lines))]


def _other(rng: random.Random) -> bytes:
    return rng.choice(registered()).sample()


_STRANGE = (b"\0", b"\0" * 2000, b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80", b'\\ud800', b"\r", b"\n\n\n", b'"', b"]]}", b"{",
            b"null\n", b"<!ENTITY a '&a;'>", b"\x1f\x8b", b"PK\x03\x04", b"data: [DONE]\n", b"\xe2\x80\xae", b",,,,",
            b"'" * 50, b"%s%n", b"\t")
_VALUES: tuple[Any, ...] = (
    None, True, -1, 0.5, "", "2026-03-02", [], {}, [None], {"": None}, {"a": {"b": [1, {"c": "d"}]}}, "\u0000", "x" * 5000,
    2**63, -(2**63), 1e308, [[[[]]]], "[", '{"a": [', "tool", "assistant", ["a", 1, None], {"role": "user"},
    {"type": "text", "text": 3}, "trace:x", "9" * 40)
_MUTATIONS: dict[Mutation, float] = {
    _cut: 2, _take_out: 2, _flip: 2, _insert: 2, _shuffle_lines: 1, _mix: 1.5, _wrong_type: 6, _deep: 0.7, _digits: 1.5,
    _twice_keyed: 1, _long_line: 0.4, _packed: 1, _database: 0.5, _bomb: 0.004}


if __name__ == "__main__":
    chosen, start, number_of = (int(each) for each in sys.argv[1:4])
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    print(orjson.dumps(run(chosen, start, number_of, Path(sys.argv[4]) if len(sys.argv) > 4 else None)).decode())
