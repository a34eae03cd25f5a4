"""What a run wrote into its folder, without what came from a person.

The directories of the services that the person was seen in (rooms, rewards, withheld rooms, datasets, rollouts) are withdrawn:
the next build makes them anew from what is left. All other files stand byte for byte, but for the report (it counts the
person), the cuts that exports keep, and what a killed run left in passing. In the end every file is read: one in which a value
of the person still stands and that no run writes is not touched; it is told.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from pipelines.erasing.identifiers import Identifiers
from pipelines.erasing.tracing import contents
from pipelines.settings import Settings

_PLACES = ("environments", "rewards", "withheld", "datasets", "rollouts")
_PASSING = (
    ".drafts", ".kits", ".datasets", ".turns", "warehouse.duckdb.readings", "warehouse.duckdb.waiting", "warehouse.duckdb.tmp")


def to_withdraw(settings: Settings, places: list[str]) -> list[str]:
    """Directories that a person's events went into, relative to the folder of the run; sorted."""
    out = Path(settings.out)
    found = [out / kind / place for kind in _PLACES for place in places]
    found += [settings.report, *(out / name for name in _PASSING)]
    return sorted(path.relative_to(out).as_posix() for path in found if path.exists())


def withdraw(settings: Settings, folders: list[str]) -> None:
    """Take these directories away: first none of them is there under its name, then its bytes go."""
    out = Path(settings.out)
    for name in folders:
        gone = out / ".drafts" / name.replace("/", ".")
        if name == ".drafts":
            continue
        gone.parent.mkdir(parents=True, exist_ok=True)
        (out / name).replace(gone)
        shutil.rmtree(gone)
    shutil.rmtree(out / ".drafts", ignore_errors=True)


def correct(settings: Settings, person: Identifiers, lineage: set[str]) -> int:
    """Take out of the files of corrections the lines that speak of the person or of what is theirs; gives how many."""
    n_gone = 0
    for path in sorted(settings.corrections.rglob("*.jsonl")) if settings.corrections.is_dir() else []:
        lines = path.read_text("utf-8").splitlines(keepends=True)
        kept = [line for line in lines if not (person.within(line) or lineage & _strings(line))]
        n_gone += len(lines) - len(kept)
        if len(kept) < len(lines):
            draft = path.with_name(f".{path.name}.draft")
            draft.write_text("".join(kept), "utf-8")
            draft.replace(path)
    return n_gone


def _strings(line: str) -> set[str]:
    return set(line.split('"'))


def still_there(out: Path, person: Identifiers, but: Iterable[Path] = ()) -> list[str]:
    """Files below a folder in which a value of the person stands, relative to it; sorted."""
    beside = tuple(but)
    return sorted(path.relative_to(out).as_posix() for path in out.rglob("*")
                  if path.is_file() and not any(path.is_relative_to(each) for each in beside)
                  and (person.within(path.name) or any(person.within_bytes(each) for each in contents(path))))

