"""The truth of the sample session, and how far a reading of one of its tellings is from it.

In: an entry of format_samples/manifest.json. Out: a list of sentences, each a difference; none where the telling is whole.
Equal is what README.md of the samples says: the same text of system, user and assistant and the same calls (tool, arguments,
error, output) in the same order, calls joined with their results, so that parallel and serialised traces are equal.
"""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from extractors.inventory import discover
from extractors.reading import Reading, read
from extractors.sessions import AssembledSessions, assemble

ROOT = Path(__file__).resolve().parents[3]
FOLDER = Path(os.environ.get("TRACEROOM_DATA", ROOT.parent / "shared" / "data")) / "format_samples"
"""As the fixture `data` finds it; known when the tests are collected, so that each file is a test."""
CHAT = "05_providers/openai_chat_log.jsonl"
JOINED = {
    "01_otlp/semconv_1_36_logs.jsonl": ("01_otlp/semconv_1_36_traces.jsonl",),
    "02_openinference/phoenix_span_annotations.jsonl": ("02_openinference/phoenix_rest_spans.jsonl",),
    "03_langfuse/blob_scores.jsonl": ("03_langfuse/blob_observations_v2.jsonl",),
    "03_langfuse/legacy_observations.jsonl": ("03_langfuse/legacy_traces.jsonl",),
    "04_platforms/langsmith_feedback.jsonl": ("04_platforms/langsmith_runs_wrap_openai.jsonl",),
    "05_providers/openai_stored_completions_list.json": ("05_providers/openai_stored_completion_g6_messages.json",),
    "01_otlp/evaluation_logs.jsonl": (CHAT,), "09_feedback/generic_feedback.jsonl": (CHAT,),
    "09_feedback/zendesk_ticket.json": (CHAT,), "09_feedback/stripe_events.jsonl": (CHAT,),
}
"""Files that say only together what the sample says."""
SESSIONS = {"06_transcripts/claude_code_session.jsonl": "d1d50b91-e623-4bbc-8bde-0975a958ac2c",
            "06_transcripts/inspect_log.json": "s1",
            "06_transcripts/codex_rollout-2026-03-02T10-15-00.jsonl": "2c94765a-dc16-4f66-96b8-488b96df2fa7"}
"""Sessions of tellings whose format has ids of its own."""
_NO_COUNTS = ("06_transcripts/mini_swe_agent.traj.json", "06_transcripts/openhands_v0_trajectory.json",
              "06_transcripts/openhands_v1")
"""The manifest says counts, the files hold none."""
_TOKENS = {"input_tokens": 2798, "output_tokens": 242}
_OFF_S = {"06_transcripts/mini_swe_agent.traj.json": 90}
"""Files whose times are all the session's first."""
_NO_USER_TIMES = "05_providers/openai_stored_completions_list.json"
"""The server keeps the time of answers alone."""
_CANNED = ("Hi! How can I help you today?", "###STOP###")
_UP = {"true", "1", "1.0", "up", "c", "👍", '{"emoji":"👍"}', "good"}


@dataclass(frozen=True)
class Telling:
    """A sample, read and assembled."""

    path: str
    readings: list[Reading]
    events: pl.DataFrame
    made: AssembledSessions


def manifest() -> dict[str, Any]:
    """Return the manifest; empty where the samples are not there."""
    path = FOLDER / "manifest.json"
    return orjson.loads(path.read_bytes()) if path.exists() else {"session": "", "conversation": [], "other": []}


def files(path: str) -> list[Path]:
    """Files and folders of an entry, and those that it must be joined with."""
    rows = [each for pattern in (path, *JOINED.get(path, ())) for each in sorted(FOLDER.glob(pattern))]
    assert rows, f"no file {path} in {FOLDER}"
    return rows


def telling(path: str, backwards: bool = False) -> Telling:
    """Read an entry the public way."""
    rows, _ = discover(files(path))
    readings = [read(each) for each in (reversed(rows) if backwards else rows)]
    events = pl.concat([each.events for each in readings])
    return Telling(path, readings, events, assemble(events, pl.concat([each.declarations for each in readings])))


@cache
def rows(name: str) -> tuple[dict[str, Any], ...]:
    """Rows of `canonical_<name>.jsonl`."""
    return tuple(orjson.loads(line) for line in (FOLDER / f"canonical_{name}.jsonl").read_bytes().splitlines())


def steps(system: bool = True) -> list[dict[str, Any]]:
    """Return the true conversation: messages, and calls with their results."""
    read_rows: list[dict[str, Any]] = []
    results = {row["call_id"]: row for row in rows("events") if row["kind"] == "tool_result"}
    for row in rows("events"):
        at = instant(row["ts"]) if "ts" in row else None
        if row["kind"] == "tool_call":
            result = results[row["call_id"]]
            read_rows.append({"shown": call_line(row["name"], row["arguments"], result["output"]), "at": at,
                          "is_error": result["is_error"], "kind": "call", "call_id": row["call_id"]})
        elif row["kind"] in ("system", "user", "assistant") and (system or row["kind"] != "system"):
            read_rows.append({"shown": f"{row['kind']}: {row['text']}", "at": at, "kind": "message"})
    return read_rows


def conversation_steps(turns: pl.DataFrame) -> list[dict[str, Any]]:
    """Return turns as steps, in their order; what a simulator says of its own accord is left out, as the manifest says."""
    steps_read = []
    for turn in turns.iter_rows(named=True):
        if turn["kind"] == "call":
            shown = call_line(turn["tool"], value(turn["arguments_raw"]), value(turn["content"]))
        elif turn["content"] in _CANNED:
            continue
        else:
            shown = f"{'system' if turn['role'] == 'developer' else turn['role']}: {turn['content']}"
        steps_read.append({"shown": shown, "at": turn["happened_at"], "is_error": turn["is_error"], "kind": turn["kind"]})
    return steps_read


def call_line(tool: str | None, arguments: Any, output: Any) -> str:
    return f"call {tool} {canonical(arguments)} -> {canonical(output)}"


def canonical(actual: Any) -> str:
    return orjson.dumps(actual, option=orjson.OPT_SORT_KEYS).decode()


def value(text: str | None) -> Any:
    """Return the value that a text spells; tau-bench writes `Error: ` before it."""
    if text is None:
        return None
    try:
        return orjson.loads(text.removeprefix("Error: "))
    except orjson.JSONDecodeError:
        return text


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def difference(truth: list[str], actual: list[str]) -> list[str]:
    """Return a diff of two lists of lines: `-` is missing, `+` is too much."""
    if truth == actual:
        return []
    return ["the conversation differs:\n" + "\n".join(
        line for line in difflib.ndiff(truth, actual) if not line.startswith("?"))]


def conversation_problems(entry: dict[str, Any]) -> list[str]:
    """Everything in which the telling of `entry` is not the truth, or less than the manifest says that it can carry."""
    made = telling(entry["path"])
    rejected = [f"{each.file.format}: {each.file.path}" for each in made.readings if each.file.n_records == 0]
    problems = [f"not read: {each}" for each in rejected]
    ids = made.made.sessions["session_id"].to_list()
    if len(ids) != 1:
        told_of = {
            each: [step["shown"] for step in conversation_steps(made.made.turns.filter(session_id=each))] for each in ids
        }
        return [*problems, f"{len(ids)} sessions instead of one: {orjson.dumps(told_of, option=orjson.OPT_INDENT_2).decode()}",
                f"{made.events.height} events; decisions: {decisions(made)}"]
    turns = conversation_steps(made.made.turns)
    in_details = entry["system_prompt"] == "in details" and any(step["shown"].startswith("system: ") for step in turns)
    system = entry["system_prompt"] is True or in_details
    truth = steps(system)
    problems += difference([step["shown"] for step in truth], [step["shown"] for step in turns])
    if not problems:
        problems += _error_problems(entry, truth, turns) + _time_problems(entry, truth, turns)
    return problems + _session_problems(made, ids[0]) + _count_problems(entry, made) + _said_problems(entry, made)


def decisions(made: Telling) -> list[str]:
    return [f"{row['reason']}: {row['detail']}" for each in made.readings
            for row in each.decisions.filter(~pl.col("kept")).head(5).to_dicts()]


def _session_problems(made: Telling, session_id: str) -> list[str]:
    expected = SESSIONS.get(made.path)
    if expected is None and any(manifest()["session"].encode() in path.read_bytes() for path in files(made.path)
                                if path.is_file() and path.suffix not in (".parquet", ".eval")):
        expected = manifest()["session"]
    return [] if expected in (None, session_id) else [f"session {session_id!r} instead of {expected!r}"]


def _error_problems(entry: dict[str, Any], truth: list[dict[str, Any]], turns: list[dict[str, Any]]) -> list[str]:
    """Where the log says it, the flag; where it says it of errors alone, at least those; where it never does, no lie."""
    says = entry["is_error"]
    problems = []
    for right, rows in zip(truth, turns, strict=True):
        if right["kind"] != "call" or right["is_error"] == rows["is_error"]:
            continue
        if rows["is_error"] is not None or says == "explicit" or (right["is_error"] and says != "inferred"):
            problems.append(f"is_error of {right['call_id']} is {rows['is_error']}, not {right['is_error']} (it is {says})")
    return problems


def _time_problems(entry: dict[str, Any], truth: list[dict[str, Any]], turns: list[dict[str, Any]]) -> list[str]:
    problems, off_s = [], _OFF_S.get(entry["path"], 2)
    for right, rows in zip(truth, turns, strict=True):
        if not entry["timestamps"]:
            if rows["at"] is not None:
                problems.append(f"{rows['at']} is invented for {right['shown'][:60]}")
        elif rows["at"] is None and entry["path"] == _NO_USER_TIMES and right["shown"].startswith("user: "):
            continue
        elif right["at"] is not None and (rows["at"] is None or abs((rows["at"] - right["at"]).total_seconds()) > off_s):
            problems.append(f"{rows['at']} instead of {right['at']} for {right['shown'][:60]}")
    return problems


def _count_problems(entry: dict[str, Any], made: Telling) -> list[str]:
    if not entry["token_usage"] or entry["path"] in _NO_COUNTS:
        return []
    rows = [orjson.loads(text) for text in made.events["usage"].drop_nulls()]
    counts = {name: sum(each.get(name) or 0 for each in rows) for name in _TOKENS}
    return [] if counts == _TOKENS else [f"token counts {counts} instead of {_TOKENS} (in {len(rows)} events)"]


def _said_problems(entry: dict[str, Any], made: Telling) -> list[str]:
    """Feedback that the telling holds itself."""
    everything = ["thumb"] if "api_trace" in entry["path"] else ["thumb", "csat"]
    wanted = {True: everything, "reaction only": ["thumb"], "reward": ["reward"]}.get(entry["feedback"], [])
    return [problem for name in wanted for problem in opinion_problems(made, name)]


def opinion_problems(made: Telling, name: str) -> list[str]:
    """Whether feedback or outcome `name` came through, on the session."""
    given = [(row["name"], row["value"]) for row in made.made.feedback.to_dicts()]
    good = {"thumb": _is_thumb, "csat": _is_csat, "reward": lambda text, answer: "reward" in text and _number(answer) == 1,
            "solved": lambda text, answer: "status" in text and answer == "solved",
            "refund": lambda text, answer: "refund" in text and _number(answer) == 2490}[name]
    if sum(good(text.lower(), answer) for text, answer in given) == 1:
        return []
    kept = made.events.filter(pl.col("kind").is_in(["feedback", "outcome"])).select(
        "kind", "session_id", "call_id", "name", "value", "content").rows()
    return [f"{name} is not exactly once among the feedback of the session: {given}; events: {kept}"]


def _is_thumb(text: str, answer: str) -> bool:
    return ("thumb" in text or "reaction" in text) and answer.lower() in _UP


def _is_csat(text: str, answer: str) -> bool:
    return ("csat" in text or "rating" in text) and (_number(answer) == 5 or answer == "good")


def _number(answer: str) -> float | None:
    try:
        return float(answer)
    except ValueError:
        return None
