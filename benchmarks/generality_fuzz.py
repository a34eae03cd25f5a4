"""Crashes of the whole build, of play and of grading on logs whose arguments and answers change their types.

    benchmarks/generality_fuzz.py DATA… [--logs N] [--first N] [--sessions N]

Each log is a few whole sessions of one set. Some values of arguments (at any depth) and some answers become another JSON type
or another shape; equal values of one log become equal ones, so that histories still agree. Every log is read and built by all
stages in this process, then its environments are played with values of the log and with other types, and graded. What counts
as a crash: any exception, the product's own errors too, for these logs are well-formed. Not seen: damaged files
(tests/extractors/mutations.py), and what only a process of its own shows. The last line on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import sys
import tempfile
import traceback
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from env_builder.runtime import Environment
from pipelines.running.run import run
from pipelines.settings import Settings
from warehouse.store import Store

SHARES = (0.05, 0.15, 0.5)
"""Share of the values that change: of a log, one of these."""
N_TASKS, N_CALLS = 3, 40
EVERY = 50
"""Logs between two lines of progress on stderr."""
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 2.5, 10 ** 20, "", " ", "x", "12", "2024-13-01", "{\"a\": [", "\u2028é", [], [[]], ["x", 1, None],
    {}, {"": None}, {"a": {"b": [1, {"c": []}]}}, [{"id": 1}, {"id": "1"}, {"id": {"x": 1}}])
TEXTS = ("", "a,b\n1,2\n", "- a: 1\n  b: [x]\n", "| a |\n|---|\n| 1 |")
"""Answers of other notations."""
Sessions = list[list[dict[str, Any]]]


def main() -> int:
    """Build and play the logs, and print what crashed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="+")
    parser.add_argument("--logs", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--sessions", type=int, default=16)
    options = parser.parse_args()
    row = fuzz(options.data, options.first, options.logs, options.sessions)
    figures = {"crashes": len(row["crashes"]), "crash_logs": row["logs"]}
    print(json.dumps({"benchmark": "generality_fuzz", "figures": figures, **row}))
    return 0


def fuzz(data: list[Path], first: int, n_logs: int, n_sessions: int) -> dict[str, Any]:
    """Return {"logs", "calls", "grades", "crashes": [{"log", "set", "error", "at"}]}."""
    sets = [each for folder in data for each in ([folder] if (folder / "logs").is_dir() else sorted(
        path.parent for path in folder.glob("*/logs")))]
    read = [(each, own) for each in sets if (own := sessions_of(each / "logs"))]
    counts, crashes = {"calls": 0, "grades": 0}, []
    for number in range(first, first + n_logs):
        folder, sessions = read[number % len(read)]
        with tempfile.TemporaryDirectory(prefix="fuzz-") as scratch, contextlib.redirect_stderr(io.StringIO()):
            try:
                for name, n in build_and_play(sessions, random.Random(number), Path(scratch), n_sessions).items():
                    counts[name] += n
            except Exception as error:  # every kind of crash counts
                frame = traceback.extract_tb(error.__traceback__)[-1]
                crashes.append({"log": number, "set": folder.name, "error": f"{type(error).__name__}: {error}"[:300],
                                "at": f"{frame.filename}:{frame.lineno}", "trace": traceback.format_exc()[-1800:]})
                print(json.dumps(crashes[-1]), file=sys.__stderr__, flush=True)
        if (n_done := number - first + 1) % EVERY == 0:
            print(f"{n_done} of {n_logs} logs, {len(crashes)} crashes", file=sys.__stderr__, flush=True)
    return {"logs": n_logs, **counts, "crashes": crashes}


def sessions_of(logs: Path) -> Sessions:
    """Return the records of each session of JSON lines; a record without a session id is a session of its own."""
    by_session: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for path in sorted(path for path in logs.rglob("*") if path.suffix in (".jsonl", ".ndjson")):
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                record = json.loads(line)
                name = record.get("session_id") or (record.get("metadata") or {}).get("session_id") or f"{path}:{number}"
                by_session[str(name)].append(record)
    return [by_session[name] for name in sorted(by_session)]


def build_and_play(sessions: Sessions, rng: random.Random, scratch: Path, n_sessions: int) -> dict[str, int]:
    """Build a changed log of some sessions, play it, and count calls and grades."""
    seed = rng.random()
    chosen = rng.sample(sessions, min(n_sessions, len(sessions)))
    records = [changed(record, seed) for session in chosen for record in session]
    log = scratch / "log.jsonl"
    log.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    run(Settings(logs=(str(log),), out=str(scratch / "out"), image=False, privacy=rng.random() < 0.1))
    return play(scratch / "out", rng)


def changed(value: Any, seed: float) -> Any:
    """Return a record whose arguments and answers are changed here and there, the same for the same seed."""
    if isinstance(value, list):
        return [changed(each, seed) for each in value]
    if not isinstance(value, dict):
        return value
    row = {name: changed(each, seed) for name, each in value.items()}
    for name in {"arguments", "args"} & row.keys():
        row[name] = _arguments(value[name], seed)
    if value.get("role") == "tool" and "content" in value:
        row["content"] = _answer(value["content"], seed)
    return row


def _arguments(given: Any, seed: float) -> Any:
    if isinstance(given, str):
        with contextlib.suppress(ValueError):
            return json.dumps(_arguments(json.loads(given), seed))
        return given
    return {name: _typed(each, seed, name) for name, each in given.items()} if isinstance(given, dict) else given


def _typed(value: Any, seed: float, name: str) -> Any:
    rng = random.Random(f"{seed}:{name}:{json.dumps(value)}")
    if rng.random() < _share(seed):
        other = rng.choice(VALUES)
        return rng.choice((other, [value], {name: value}, {"value": value}, str(value), [value, other]))
    if isinstance(value, dict):
        return {inner: _typed(each, seed, inner) for inner, each in value.items()}
    return [_typed(each, seed, name) for each in value] if isinstance(value, list) else value


def _answer(content: Any, seed: float) -> Any:
    if not isinstance(content, str):
        return content
    rng = random.Random(f"{seed}:{content}")
    try:
        document = json.loads(content)
    except ValueError:
        document = content
    shape, share = rng.random(), _share(seed)
    if shape < share / 2:
        shapes = (rng.choice(VALUES), [document], {"status": 200, "data": document})
        return rng.choice((*map(json.dumps, shapes), repr(document), content[:len(content) // 2], *TEXTS))
    return content if document is content else json.dumps(_typed(document, seed, "answer"))


def _share(seed: float) -> float:
    return random.Random(seed).choice(SHARES)


def play(out: Path, rng: random.Random) -> dict[str, int]:
    """Play some tasks and an open episode of every environment with the log's calls and with changed ones."""
    with Store.open(out / "warehouse.duckdb", write=False) as store:
        rows = store.read("select tool, arguments, content from core.turns where kind = 'call' and tool is not null "
                          "and arguments is not null order by all").rows()
    counts = {"calls": 0, "grades": 0}
    for manifest in sorted(out.glob("*/*/manifest.json")):
        environment = Environment.load(manifest.parent)
        for task_id in (None, *(task.task_id for task in rng.sample(environment.tasks, min(N_TASKS, len(environment.tasks))))):
            environment.reset(task_id)
            counts["calls"] += sum(1 for _ in _calls(environment, rows, rng, task_id is None))
            if task_id is not None:
                environment.say("It is done.")
                environment.finish()
                environment.grade()
                counts["grades"] += 1
    return counts


def _calls(
    environment: Environment, rows: list[tuple[str, str, str | None]], rng: random.Random, learns: bool
) -> Iterator[None]:
    for tool, text, content in rng.sample(rows, min(N_CALLS, len(rows))):
        arguments: Any = json.loads(text)
        if rng.random() < 0.5:
            arguments = {name: rng.choice(VALUES) if rng.random() < 0.5 else each for name, each in arguments.items()}
        elif rng.random() < 0.1:
            arguments = rng.choice(VALUES)
        environment.call(tool, arguments)
        if learns and content is not None and isinstance(arguments, dict):
            environment.learn(tool, arguments, content)
        yield


if __name__ == "__main__":
    sys.exit(main())
