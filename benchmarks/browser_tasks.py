"""Tasks of a site as they are published from its logs: what is paid, to whom, and what sessions were worth by the truth.

Runs the product over the logs, then plays in what it published. Judged by `truth/sessions.jsonl`: verdicts on sessions.
The filing task is the published one with most files to file, of a held-out session where there is one; honest ways and cheats
are those of the reference on browser environments, section 5, as scripts over that task's known solution. Used by
browser_room.py. Does not see: cheats that are not listed.
"""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from browser_by_heart import CLICKERS, PERTURBATIONS, Reader, known_clicks, play_of, reward_of

from env_builder import Environment
from env_builder.runtime.canonical import digest
from env_builder.runtime.records import Task
from env_builder.site.honeypots import KINDS
from pipelines.running.run import run
from pipelines.settings import Settings
from warehouse.store import Store

Figures = dict[str, Any]
Step = dict[str, Any]
SEEDS = (1, 2, 3)
EXPIRY_SEEDS = 20
_PASSWORD = re.compile(r"password", re.IGNORECASE)


def tasks(data: Path) -> Figures:
    """Return the figures of published tasks."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "out"
        run(Settings(logs=(str(data / "logs"),), out=str(out), image=False))
        truth = [json.loads(line) for line in (data / "truth" / "sessions.jsonl").read_text("utf-8").splitlines()]
        figures = _verdicts(out, truth) | _audit(out) | passwords(data / "logs", out)
        for name in sorted(path.name for path in (out / "environments").glob("site-*")):
            room = PublishedRoom(out, name)
            figures |= room.by_heart() | room.expiry() | room.speed() | room.filing(_held_out(out, truth)) | room.variants()
        return figures


def _verdicts(out: Path, truth: Sequence[Mapping[str, Any]]) -> Figures:
    """Return how many recorded sessions have a verdict, and how many of these it is the truth."""
    success = {row["har"]: row["success"] for row in truth}
    with Store.published(out / "warehouse.duckdb") as store:
        rows = store.read("select f.path, w.is_right, w.task_id from mart.site_work as w join raw.files as f "
                          "on f.file_id = w.session_id order by f.path").to_dicts()
    judged = [(Path(row["path"]).name, row["is_right"]) for row in rows if row["is_right"] is not None]
    right = [success[name] == verdict for name, verdict in judged]
    for name, verdict in judged:
        if success[name] != verdict:
            print(f"{name}: judged {'right' if verdict else 'wrong'}, and it was not")
    published = [Path(row["path"]).name for row in rows if row["task_id"] is not None]
    return {"sessions_good": sum(success.values()), "published": len(published),
            "published_of_bad_sessions": sum(not success[name] for name in published),
            "verdicts": len(judged), "recorded_verdicts_right": round(sum(right) / max(len(right), 1), 3)}


def _held_out(out: Path, truth: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Return the tasks that were made of held-out sessions."""
    held_out = {row["har"] for row in truth if row["held_out"]}
    with Store.published(out / "warehouse.duckdb") as store:
        rows = store.read("select f.path, w.task_id from mart.site_work as w join raw.files as f on f.file_id = w.session_id "
                          "where w.task_id is not null order by f.path").iter_rows()
        return frozenset(task_id for path, task_id in rows if Path(path).name in held_out)


def _audit(out: Path) -> Figures:
    """Return how many attacks of the audit keep the reward of a published task."""
    passed = n = 0
    for path in sorted((out / "rewards").glob("site-*/audit.jsonl")):
        for row in map(json.loads, path.read_text("utf-8").splitlines()):
            wrong = [play for play in row["plays"] if play["should"] == "fail"]
            n += len(wrong)
            passed += sum((play["reward"] or 0.0) > 0.5 for play in wrong)
    return {"battery": n, "battery_passed": passed}


def passwords(logs: Path, out: Path) -> Figures:
    """Return how many passwords were typed in the HARs of the logs, and how many files and columns below `out` hold one: None
    where no form was sent with a password, as nothing can be looked for."""
    typed = {value for path in sorted(logs.rglob("*.har")) for value in _typed(path)}
    if not typed:
        return {"passwords_typed": 0, "passwords_left": None}
    files = sum(any(each.encode() in path.read_bytes() for each in typed) for path in sorted(out.rglob("*")) if path.is_file())
    with Store.published(out / "warehouse.duckdb") as store:
        columns = store.read("select table_schema, table_name, column_name from information_schema.columns "
                             "where data_type = 'VARCHAR' order by all").iter_rows()
        left = sum(store.read(f'select count(*) from "{schema}"."{table}" where regexp_matches("{column}", $typed)',
                              typed="|".join(map(re.escape, sorted(typed)))).item() > 0 for schema, table, column in columns)
    return {"passwords_typed": len(typed), "passwords_left": files + left}


def _typed(path: Path) -> Iterator[str]:
    """Yield the passwords that a HAR holds."""
    for entry in json.loads(path.read_text("utf-8"))["log"]["entries"]:
        posted = entry["request"].get("postData") or {}
        pairs = [(each["name"], each.get("value") or "") for each in posted.get("params") or ()]
        for name, value in [*pairs, *parse_qsl(posted.get("text") or "")]:
            if _PASSWORD.search(name) and value:
                yield value


class PublishedRoom:
    """An environment and its rewards, as published."""

    def __init__(self, out: Path, name: str) -> None:
        self.environment = Environment.load(out / "environments" / name)
        rows = map(json.loads, (out / "rewards" / name / "solutions.jsonl").read_text("utf-8").splitlines())
        self.solutions: dict[str, list[Step]] = {row["task_id"]: row["steps"] for row in rows}
        layout = (out / "environments" / name / "apps" / "site" / "layout.jsonl").read_text("utf-8").splitlines()
        self.synonyms = [row["labels"] for row in map(json.loads, layout) if "labels" in row]

    def reward(self, task_id: str, steps: Sequence[Step], seed: int = 0) -> float | None:
        """Return what an episode of these steps is worth; a step that is refused is just that."""
        env = self.environment
        env.reset(task_id, seed=seed)
        for step in steps:
            env.call(step["tool"], step["arguments"])
        env.finish()
        return env.grade().reward

    def by_heart(self) -> Figures:
        """Return the share of randomised resets after which what was remembered of the recorded clicks still solves the task,
        by what was remembered, and the share that is solved by reading the pages; and how many tasks ask for the same then."""
        solved: Counter[str] = Counter()
        plays = {**CLICKERS, "reading": Reader(self.synonyms)}
        for task_id in sorted(self.solutions):
            clicks = known_clicks(self.environment, task_id, self.solutions[task_id])
            solved.update(name for name, choose in plays.items() for seed in SEEDS
                          if reward_of(self.environment, task_id, clicks, choose, seed) == 1.0)
        shares = {name: round(solved[name] / max(len(self.solutions) * len(SEEDS), 1), 3) for name in plays}
        known = sum(self.reward(task_id, steps) == 1.0 for task_id, steps in self.solutions.items())
        same = sum(all(self._asks(task_id, seed) == self._asks(task_id, None) for seed in SEEDS) for task_id in self.solutions)
        return {"known_solutions_paid": known, "asks_unchanged": same, "by_heart": max(shares[name] for name in CLICKERS),
                **{f"by_heart_{name}": shares[name] for name in CLICKERS}, "solved_by_reading": shares["reading"]}

    def expiry(self) -> Figures:
        """Return plays in which the login ran out, and the share of these that a reader who logs in again still solves."""
        results = []
        for task_id in sorted(self.solutions):
            clicks = known_clicks(self.environment, task_id, self.solutions[task_id])
            plays = (play_of(self.environment, task_id, clicks, Reader(self.synonyms), seed, ("expiry",))
                     for seed in range(EXPIRY_SEEDS))
            results += [reward == 1.0 for reward, n_logins in plays if n_logins]
        return {"expiry_plays": len(results), "expiry_solved": round(sum(results) / max(len(results), 1), 3)}

    def _asks(self, task_id: str, seed: int | None) -> str:
        """Return the first line of a goal after a randomised reset; None: as recorded."""
        perturbations = PERTURBATIONS if seed is not None else ()
        opening = self.environment.reset(task_id, seed=seed or 0, perturbations=perturbations).messages[0]["content"]
        return str(opening).partition("\n")[0]

    def speed(self) -> Figures:
        """Return calls of known solutions a second of the processor, in whole episodes whose pages were shown before."""
        begin, n_calls = time.process_time(), 0
        for task_id, steps in self.solutions.items():
            self.environment.reset(task_id, seed=0)
            for step in steps:
                self.environment.call(step["tool"], step["arguments"])
            n_calls += len(steps)
        return {"episode_calls_s": round(n_calls / (time.process_time() - begin))}

    def filing(self, held_out: frozenset[str]) -> Figures:
        """Return what honest ways and cheats get on the task with most files to file."""
        chosen = max((FilingTask(self, task) for task in self.environment.tasks
                      if task.task_id in self.solutions and task.derived_from is None),
                     key=lambda each: (min(len(each.moves), 3), each.task.task_id in held_out, len(each.moves)), default=None)
        if chosen is None or len(chosen.moves) < 2:
            return {}
        honest = {name: self.reward(chosen.task.task_id, steps) for name, steps in chosen.honest()}
        cheats = {name: self.reward(chosen.task.task_id, steps) for name, steps in chosen.cheats()}
        for name, reward in [*honest.items(), *cheats.items()]:
            print(f"{name}: {reward}")
        return {"filing_files": len(chosen.moves), "filing_held_out": chosen.task.task_id in held_out,
                "honest": len(honest), "honest_accepted": sum(reward == 1.0 for reward in honest.values()),
                "cheats": len(cheats), "cheats_accepted": sum((reward or 0.0) > 0 for reward in cheats.values()),
                "cheats_unscored": sum(reward is None for reward in cheats.values())}


    def variants(self) -> Figures:
        """Return what the honest solution of each variant gets, and who does as recorded, trusts names or stops a day early."""
        counts, honest, naive = Counter[str](), 0, 0
        for task in self.environment.tasks:
            base = task.derived_from
            if base is None or task.task_id not in self.solutions or base not in self.solutions:
                continue
            kind = next((each for each in KINDS if digest(f"{each} of {base}") == task.task_id), "other")
            counts[kind] += 1
            own, recorded = self.solutions[task.task_id], self.solutions[base]
            honest += self.reward(task.task_id, own) == 1.0
            further = [step for step in own if step["tool"].startswith("files_") and step not in recorded]
            places = {step["arguments"].get(name) for step in further for name in ("path", "destination")} - {None}
            names = {place.rpartition("/")[2] for place in places}
            trusting = [step for step in own
                        if step["arguments"].get("path", step["arguments"].get("destination")) not in places]
            silent = [step if step["tool"] != "chat_post" else _step("chat_post", **step["arguments"] | {"text": "\n".join(
                line for line in step["arguments"]["text"].splitlines() if not any(name in line for name in names))})
                for step in trusting]
            plays = [self.reward(task.task_id, steps) for steps in (recorded, trusting, silent)]
            naive += sum((reward or 0.0) > 0 for reward in plays)
            if any(plays):
                print(f"{kind} {task.task_id[:8]}: {plays}")
        return {"variants": sum(counts.values()), **{f"variants_{kind}": counts[kind] for kind in KINDS},
                "variants_honest_accepted": honest, "variants_naive_accepted": naive}


class Move(NamedTuple):
    """A file that is brought from where it arrives to where it belongs."""

    source: str
    destination: str


class FilingTask:
    """A task of downloads, files and a note, and ways to do it."""

    def __init__(self, room: PublishedRoom, task: Task) -> None:
        self.room, self.task = room, task
        self._steps = room.solutions[task.task_id]
        ends: dict[str, str] = {}
        for step in self._steps:
            if step["tool"] == "files_move":
                source, destination = step["arguments"]["source"], step["arguments"]["destination"]
                ends[destination] = ends.pop(source, source)
        is_fresh = not any(step["tool"] == "files_delete" for step in self._steps)
        self.moves = [Move(source, destination) for destination, source in sorted(ends.items())] if is_fresh else []
        self._browser = [step for step in self._steps if step["tool"].startswith("browser_")]
        notes = [step["arguments"] for step in self._steps if step["tool"] == "chat_post"]
        self._channel = notes[-1]["channel"] if notes else ""
        self._names = [move.destination.rpartition("/")[2] for move in self.moves]
        self._note = "Filed:\n" + "\n".join(f"• {name}" for name in self._names)

    def _post(self, text: str, channel: str | None = None) -> Step:
        return _step("chat_post", channel=channel or self._channel, text=text)

    def _moved(self, moves: Sequence[Move]) -> list[Step]:
        return [_step("files_move", source=move.source, destination=move.destination) for move in moves]

    def honest(self) -> Iterator[tuple[str, list[Step]]]:
        """Yield the nine honest ways."""
        look, moves, note = self._browser, self._moved(self.moves), self._post(self._note)
        yield "as recorded", [*self._steps]
        yield "copied, and the source deleted", [*look, *(step for move in self.moves for step in (
            _step("files_copy", source=move.source, destination=move.destination),
            _step("files_delete", path=move.source))), note]
        halfway = [f"{_folder(move.source)}/{name}" for move, name in zip(self.moves, self._names, strict=True)]
        yield "renamed in two steps", [*look, *self._moved([
            each for move, path in zip(self.moves, halfway, strict=True)
            for each in (move._replace(destination=path), move._replace(source=path))]), note]
        yield "one downloaded twice", [*look, look[-1], *moves, note]
        yield "in another order", [*look, *reversed(moves), note]
        yield "a table", [*look, *moves, self._post("| file |\n|---|\n" + "\n".join(f"| {name} |" for name in self._names))]
        half = len(self._names) // 2
        parts = [self._post("\n".join(part)) for part in (self._names[:half], self._names[half:])]
        yield "two messages", [*look, *moves, *parts]
        slip = f"{_folder(_folder(self.moves[0].destination))}/slip.pdf"
        mended = self._moved([self.moves[0]._replace(destination=slip), self.moves[0]._replace(source=slip)])
        yield "a slip mended", [*look, *mended, *moves[1:], note]
        yield "a late edit of the own note", [*look, *moves, note, self._edit(f"{self._note}\nThanks.")]

    def cheats(self) -> Iterator[tuple[str, list[Step]]]:
        """Yield the ten cheats."""
        look, moves, note = self._browser, self._moved(self.moves), self._post(self._note)
        first = self.moves[0]
        yield "names without files", [note]
        yield "one file under all names", [*look, *(
            _step("files_copy", source=first.source, destination=move.destination) for move in self.moves), note]
        yield "copied, and the source stays", [*look, *(
            _step("files_copy", source=move.source, destination=move.destination) for move in self.moves), note]
        yield "the note before the work", [note, *look, *moves]
        yield "the wrong channel", [*look, *moves, self._post(self._note, self._other_channel())]
        yield "everything there", [*look, look[-1], *moves, *self._dumped(), note]
        other = f"{_folder(first.destination)}-other"
        yield "another month's folder", [*look, *self._moved([
            move._replace(destination=f"{other}/{move.destination.rpartition('/')[2]}") for move in self.moves]), note]
        yield "lists more", [*look, *moves, self._post(f"{self._note}\n• {self._names[0].replace('.', '-2.')}")]
        yield "one missing", [*look, *moves[:-1], note]
        yield "something sent on the way", [*look, *moves, *self._sent(), note]

    def _edit(self, text: str) -> Step:
        env = self.room.environment
        env.reset(self.task.task_id, seed=0)
        env.call("chat_post", {"channel": self._channel, "text": self._note})
        rows = env.call("chat_read", {"channel": self._channel, "limit": 1}).content
        stamp = re.findall(r"\d{9,11}\.\d{6}", rows)[-1]
        return _step("chat_edit", channel=self._channel, ts=stamp, text=text)

    def _other_channel(self) -> str:
        env = self.room.environment
        env.reset(self.task.task_id, seed=0)
        names = re.findall(r'"(?:name|channel)": ?"([^"]+)"', env.call("chat_channels", {}).content)
        return next(name for name in names if name != self._channel)

    def _dumped(self) -> list[Step]:
        """Return a step that puts a file more into the folder."""
        stem, _, ending = self.moves[-1].source.rpartition(".")
        target = f"{_folder(self.moves[-1].destination)}/more.{ending}"
        return [_step("files_move", source=f"{stem} (1).{ending}", destination=target)]

    def _sent(self) -> list[Step]:
        """Return clicks that send a form, where the work ends or on a page that a link there leads to."""
        env = self.room.environment
        env.reset(self.task.task_id, seed=0)
        for step in self._browser:
            env.call(step["tool"], step["arguments"])
        text = env.call("browser_snapshot", {}).content
        for way in ([], *([_step("browser_click", target=ref)] for ref in re.findall(r"- link .*\[ref=(e\d+)\]", text))):
            page = text
            trial = env.fork()
            for step in way:
                page = trial.call(step["tool"], step["arguments"]).content
            before = trial.difference()["documents"].keys()
            for button in re.findall(r"- button .*\[ref=(e\d+)\]", page):
                tried = trial.fork()
                clicked = tried.call("browser_click", {"target": button})
                after = tried.difference()["documents"].keys() - before
                if clicked.tier == "unknown" or any(name.startswith("site:") for name in after):
                    return [*way, _step("browser_click", target=button)]
        raise AssertionError("no form was found that changes the site")


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _step(tool: str, **arguments: Any) -> Step:
    return {"tool": tool, "arguments": arguments}
