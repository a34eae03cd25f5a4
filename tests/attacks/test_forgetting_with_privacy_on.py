"""A person is forgotten by the command, with privacy on, killed at any moment: no pseudonym stays, nobody else is touched."""

from __future__ import annotations

import random
import re
import shutil
import time
from pathlib import Path

import pytest

from extractors.privacy import KINDS
from pipelines.privacy import guard
from tests.attacks.originals import traces, values_by_file
from tests.attacks.report import Report, counted
from tests.attacks.runs import RUN, Run
from tests.pipelines.conftest import part_of_sample, tables
from warehouse.store import Store

KILLS = 20
_ID, _MAIL = re.compile(r"\b[a-z]+_[a-z]+_\d{4}\b"), re.compile(r"[\w.]+@[\w.]+\w")
_UNRELATED = ("core.sessions", "core.turns", "mart.outcomes", "mart.goals", "mart.tasks")


def somebody(logs: Path) -> list[str]:
    """Return the id of somebody with a record in the logs, and the e-mail addresses in it."""
    texts = [path.read_text("utf-8") for path in sorted((logs / "logs").glob("*.jsonl"))]
    found = [name for text in texts for line in text.splitlines() for name in {*_ID.findall(line)}]
    with_mail = {name: sorted({mail for text in texts for line in text.splitlines() if name in line
                               for mail in _MAIL.findall(line) if name.split("_")[1] in mail}) for name in {*found}}
    name = max(sorted(each for each, mails in with_mail.items() if mails), key=found.count)
    return [name, *with_mail[name]]


def stored_forms(out: Path, values: list[str]) -> set[str]:
    """Return all pseudonyms that these values may have, of any kind."""
    with Store.published(out / "warehouse.duckdb") as store:
        made = guard.owner_of(store).pseudonyms()
    return {made.of(kind, value) for kind in KINDS for value in values} - {*values}


class Forgetting:
    """A built and released folder, and what forgetting somebody makes of it when nobody disturbs it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.logs, self.built = folder, part_of_sample(folder / "logs"), folder / "built"
        self.values = somebody(self.logs)
        for words in ((*RUN, self.logs), ("release",), ("report",)):
            run = self._started(self.built, *words)
            code = run.end()
            assert code in (0, 1), run.lines
        self.forms = stored_forms(self.built, self.values)
        stored: set[str] = set().union(*values_by_file(self.built, self.forms).values())
        assert len(stored) >= 2, "id and address are stored, as others"
        self.before = tables(self.built)
        whole, began = self.copied("whole"), time.monotonic()
        code = self.forget(whole).end()
        self.seconds = time.monotonic() - began
        assert code == 0
        self.after = tables(whole)
        self.names = {path.name for path in whole.iterdir()}

    def copied(self, name: str) -> Path:
        """Return a copy of the folder."""
        out = self.folder / name
        shutil.copytree(self.built, out)
        return out

    def forget(self, out: Path) -> Run:
        """Start the command."""
        return self._started(out, "forget", "--subject", self.values[0])

    def rebuilt(self, out: Path) -> Run:
        """Start a run over the same logs."""
        return self._started(out, *RUN, self.logs)

    def _started(self, out: Path, *words: str | Path) -> Run:
        return Run(self.folder, *words, "--out", out, TRACEROOM_ENGINE="process")

    def problems(self, out: Path) -> list[str]:
        """Name what stays of the person, and what differs from an undisturbed forgetting."""
        found = tables(out)
        differs = [name for name in self.after if not self.after[name].sort("*").equals(found[name].sort("*"))]
        with Store.published(out / "warehouse.duckdb") as store:
            people = guard.stored_people(store, guard.owner_of(store))
        left = [value for _, value in people if value.lower() in {each.lower() for each in self.values}]
        names = {path.name for path in out.iterdir()} ^ self.names
        return [*traces(out, {*self.values, *self.forms}), *(f"{name} differs" for name in differs),
                *(["values of theirs are stored, encrypted"] if left else []), *(f"{name} stays" for name in names)]

    def touched(self) -> list[str]:
        """Name the tables in which rows of others changed."""
        return [name for name in _UNRELATED if not self.after[name].join(
            self.before[name], on=self.after[name].columns[0], how="anti").is_empty()]


def attack(folder: Path, share: float) -> Report:
    """Kill the command at many moments, then let it end; in the end read all logs again."""
    work, choose, problems = Forgetting(folder), random.Random(27), []
    problems += [*work.problems(folder / "whole"), *(f"{name} changed for others" for name in work.touched())]
    n = counted(KILLS, share)
    for number in range(n):
        out = work.copied(f"killed{number}")
        run = work.forget(out)
        time.sleep(choose.random() * work.seconds)
        run.kill(whole_group=False)
        last = work.forget(out)
        code = last.end()
        problems += work.problems(out) if code == 0 else [f"exit code {code}: {''.join(last.lines)[-400:]}"]
        if number == n - 1:
            again = work.rebuilt(out)
            assert again.end() == 0, again.lines
            problems += [f"read again: {each}" for each in traces(out, {*work.values, *work.forms})]
        shutil.rmtree(out)
    return Report(n + 1, tuple(problems), {"originals_left": float(len(problems))})


@pytest.mark.slow
def test_nothing_of_a_person_stays_under_a_pseudonym(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.05).problems == ()
