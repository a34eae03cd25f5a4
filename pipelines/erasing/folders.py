"""Files that came from a person, and the folder of a run without them.

A file is traced to the person by their values, and by the ids of their records. The directories of the services that the person
used (environments, rewards, unverified environments, datasets, rollouts, episodes on the real service) are removed: the next
build writes them again from the remaining data, but for episodes. All other files are unchanged, but for the report (it counts
the person), the cuts that exports cache, and the temporary files of a killed run. In the end every file is read: one that still
contains a value of the person and that no run writes is only reported.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl

from pipelines.erasing.identifiers import Identifiers
from pipelines.settings import Settings

_STRING = re.compile(rb'"([^"\\]{2,200})"')
_CODE = (".py", ".pyc", ".css")
_KINDS = ("environments", "rewards", "unverified", "datasets", "rollouts", "transfer")
_TEMPORARY = (
    ".drafts", ".kits", ".datasets", ".turns", "warehouse.duckdb.readings", "warehouse.duckdb.waiting", "warehouse.duckdb.tmp")


class Trace:
    """Values and ids that show that a file came from a person."""

    def __init__(self, person: Identifiers, lineage: Iterable[str]) -> None:
        self.person = person
        self._ids = {each.encode() for each in lineage if len(each) > 1 and not each.isdigit()}

    def in_file(self, path: Path, name: str = "") -> bool:
        """Whether a file came from them. `name`: its name, if it is stored under another one."""
        return any(self.person.within_bytes(content) or not self._ids.isdisjoint(_STRING.findall(content))
                   for content in contents(path, name or path.name))


def contents(path: Path, name: str = "") -> Iterator[bytes]:
    """Yield the bytes of a file for a search: Parquet as JSON too, all else as it is; code is nobody's."""
    suffix = Path(name or path.name).suffix
    if suffix in _CODE:
        return
    if suffix == ".parquet":
        for rows in pl.scan_parquet(path).collect_batches():
            yield rows.write_ndjson().encode()
    yield path.read_bytes()


def to_withdraw(settings: Settings, names: list[str]) -> list[str]:
    """Return the directories that contain a person's data, relative to the folder of the run; sorted."""
    out = Path(settings.out)
    paths = [out / kind / name for kind in _KINDS for name in names]
    paths += [settings.report, *(out / name for name in _TEMPORARY)]
    return sorted(path.relative_to(out).as_posix() for path in paths if path.exists())


def withdraw(settings: Settings, folders: list[str]) -> None:
    """Delete these directories; each is renamed first, so that it is never there in part."""
    out = Path(settings.out)
    for name in (name for name in folders if name != ".drafts"):
        gone = out / ".drafts" / name.replace("/", ".")
        gone.parent.mkdir(parents=True, exist_ok=True)
        (out / name).replace(gone)
        shutil.rmtree(gone)
    shutil.rmtree(out / ".drafts", ignore_errors=True)


def correct(settings: Settings, person: Identifiers, lineage: set[str]) -> int:
    """Delete the lines of correction files, reviews and accepted answers that are about the person or their records, and count
    them."""
    n_gone, files = 0, (settings.reviews, settings.answers)
    for path in [*sorted(settings.corrections.rglob("*.jsonl")), *filter(Path.is_file, files)]:
        lines = path.read_text("utf-8").splitlines(keepends=True)
        kept = [line for line in lines if not (person.within(line) or not lineage.isdisjoint(line.split('"')))]
        n_gone += len(lines) - len(kept)
        if len(kept) < len(lines):
            draft = path.with_name(f".{path.name}.draft")
            draft.write_text("".join(kept), "utf-8")
            draft.replace(path)
    return n_gone


def still_there(out: Path, person: Identifiers) -> list[str]:
    """Return the files below a folder that contain a value of the person, relative to it; sorted."""
    return sorted(path.relative_to(out).as_posix() for path in out.rglob("*")
                  if path.is_file() and (person.within(path.name) or any(person.within_bytes(each) for each in contents(path))))
