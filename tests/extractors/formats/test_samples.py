"""One support session in every format: each telling gives the truth, as far as its format can carry it.

Each file of format_samples/manifest.json is a test: `pytest tests/extractors/formats/test_samples.py -n 0 -k claude_code`
runs one of them (by any part of its path), and fails with a list of what is wrong, or a diff of the two conversations.
"""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from tests.extractors.formats import canonical
from tests.extractors.formats.accounts import accounted_for
from tests.extractors.formats.canonical import JOINED, Telling, telling

MANIFEST = canonical.manifest()
BY_KIND: dict[str, list[str]] = {}
for _entry in MANIFEST["other"]:
    BY_KIND.setdefault(_entry["kind"], []).append(_entry["path"])
CALLS = [step["shown"] for step in canonical.steps() if step["kind"] == "call"] if MANIFEST["other"] else []
OPINIONS = {
    "01_otlp/evaluation_logs.jsonl": ["thumb", "csat"], "02_openinference/phoenix_span_annotations.jsonl": ["thumb", "csat"],
    "03_langfuse/blob_scores.jsonl": ["thumb", "csat"], "04_platforms/langsmith_feedback.jsonl": ["thumb", "csat"],
    "09_feedback/generic_feedback.jsonl": ["thumb", "csat", "solved", "refund"],
    "09_feedback/zendesk_ticket.json": ["csat", "solved"], "09_feedback/intercom_conversation.json": ["csat"],
    "09_feedback/stripe_events.jsonl": ["refund"],
}
"""What each file of opinions holds."""
OPERATIONS = {"insert": "create", "update": "update", "delete": "delete"}


def entries(kind: str) -> Any:
    return pytest.mark.parametrize("path", BY_KIND.get(kind, []))


def test_every_sample_is_a_test(data: Path) -> None:
    """A file that no entry and no join names would be read by nobody."""
    named = {path for entry in MANIFEST["conversation"] + MANIFEST["other"] for path in canonical.files(entry["path"])}
    inside = {each for path in named for each in (path.rglob("*") if path.is_dir() else [path]) if each.is_file()}
    there = {path for path in canonical.FOLDER.glob("0*/**/*") if path.is_file()}
    assert there == inside and len(MANIFEST["conversation"]) == 42
    assert set(BY_KIND) == {"http", "db", "business", "feedback", "outcome", "feedback+outcome", "tools only",
                            "one generation", "preference pair"}
    assert set(OPINIONS) == {path for kind in ("feedback", "outcome", "feedback+outcome") for path in BY_KIND[kind]}


@pytest.mark.parametrize("entry", MANIFEST["conversation"], ids=lambda each: each["path"])
def test_conversation(entry: dict[str, Any]) -> None:
    problems = canonical.conversation_problems(entry)
    assert not problems, "\n\n".join(problems)


@pytest.mark.parametrize("path", [path for path in JOINED if "feedback" not in path])
def test_order_of_the_files_does_not_matter(path: str, data: Path) -> None:
    one, other = telling(path), telling(path, backwards=True)
    assert one.made.turns.equals(other.made.turns) and one.made.feedback.equals(other.made.feedback)
    assert one.made.sessions.height == 1


@entries("http")
def test_requests(path: str) -> None:
    plain = "apache_common" in path
    made = telling(path)
    read_rows = {(each["tool"], orjson.loads(each["value"])["status"]): each
             for each in made.events.filter(kind="request").to_dicts()}
    rows = {(f"{row['method']} {row['path'].partition('?')[0]}", row["status"]): row for row in canonical.rows("http_events")}
    assert read_rows.keys() == rows.keys(), canonical.decisions(made)
    for key, row in rows.items():
        event = read_rows[key]
        assert orjson.loads(event["arguments"])["query"] == ({"sku": "LANT-SOLAR-2"} if "?" in row["path"] else {})
        at, started = event["happened_at"], canonical.instant(row["ts"])
        off = abs((at.replace(year=started.year) if "rfc3164" in path else at) - started)
        assert off <= timedelta(seconds=6 if plain else 1.1), f"{at} is not the start {row['ts']}"
        if not plain:
            assert (event["call_id"], event["requestor"]) == (row["request_id"], row["call_id"])
            assert event["latency_ms"] == pytest.approx(row["duration_ms"], abs=0.01)
            assert event["session_id"] == MANIFEST["session"]
    assert made.made.turns.height == 5 and made.made.turns["is_error"].to_list().count(True) == 1


@entries("db")
def test_row_changes(path: str) -> None:
    made = telling(path)
    if "pgaudit" in path:
        _statements(made)
        return
    rows = made.made.row_changes.to_dicts()
    assert len(rows) == 3, canonical.decisions(made)
    for row, change in zip(canonical.rows("db_events"), rows, strict=True):
        assert (change["operation"], change["table_name"]) == (OPERATIONS[row["op"]], row["table"])
        assert canonical.value(change["after"]) == row["after"]
        before = canonical.value(change["before"])
        assert before is None or before == row["before"] or before == {"id": row["before"]["id"]}, "the old row, or its key"
        assert abs(change["happened_at"] - canonical.instant(row["ts"])) <= timedelta(milliseconds=5)
    transactions = made.events.filter(kind="row_change").sort("happened_at")["call_id"].to_list()
    assert transactions == [str(row["tx"]) for row in canonical.rows("db_events")]


def _statements(made: Telling) -> None:
    """Check that an audit holds statements and no row images: text, table and time."""
    rows = made.events.sort("happened_at").to_dicts()
    assert len(rows) == 3, canonical.decisions(made)
    for row, event in zip(canonical.rows("db_events"), rows, strict=True):
        text = " ".join(each for each in event.values() if isinstance(each, str))
        assert f"{row['op'].upper()} " in text and row["table"] in text and str(row["after"]["id"]) in text
        assert abs(event["happened_at"] - canonical.instant(row["ts"])) <= timedelta(milliseconds=5)


@entries("business")
def test_business_events(path: str) -> None:
    made = telling(path)
    names = [row["name"] for row in canonical.rows("business_events")]
    events = made.events.filter(kind="business").sort("happened_at", maintain_order=True).to_dicts()
    rows = [event for event in events if any(name in _words(event["tool"]) for name in names)]
    assert len(rows) == 5, (canonical.decisions(made), [event["tool"] for event in events])
    has_session = any(MANIFEST["session"].encode() in each.read_bytes() for each in canonical.files(path))
    for row, event in zip(canonical.rows("business_events"), rows, strict=True):
        assert row["name"] in _words(event["tool"])
        carried = {name: str(content) for name, content in row.items() if name not in ("seq", "kind", "name", "ts")}
        assert all(content in event["arguments"] for content in carried.values()), f"{carried} is not in {event['arguments']}"
        assert event["happened_at"] == canonical.instant(row["ts"])
        assert event["session_id"] == (MANIFEST["session"] if has_session else event["session_id"])


def _words(name: str) -> str:
    return re.sub(r"\W+", "_", name.lower())


@pytest.mark.parametrize("path", OPINIONS if MANIFEST["other"] else [])
def test_feedback_and_outcomes(path: str) -> None:
    made = telling(path)
    assert MANIFEST["session"] in made.made.sessions["session_id"].to_list()
    problems = [problem for name in OPINIONS[path] for problem in canonical.opinion_problems(made, name)]
    assert not problems, "\n".join([*problems, *canonical.decisions(made)])
    if "csat" in OPINIONS[path]:
        comments = made.events.filter(pl.col("kind").is_in(["feedback", "outcome"]))["content"].drop_nulls().to_list()
        assert "Fast and friendly, refund worked on the second try." in comments


def test_a_ticket_holds_what_was_said_without_its_markup(data: Path) -> None:
    made = telling("09_feedback/intercom_conversation.json").made
    texts = [text for text in made.turns.sort("position")["content"].to_list() if text]
    assert texts[0] == "Hi, order LN-10482 arrived with a cracked glass. Can I get my money back?"
    assert 'Yes please – and is the "café" lantern in stock? 🙏' in texts and not any("<p>" in text for text in texts)
    given = {row["value"] for row in made.feedback.to_dicts()}
    assert {"confirmed_resolution", "closed"} <= given


def test_one_refund_in_two_events_is_one_outcome(data: Path) -> None:
    made = telling("09_feedback/stripe_events.jsonl")
    refunds = made.made.feedback.filter(pl.col("name").str.contains("(?i)refund"))
    assert refunds["value"].to_list() == ["2490"]
    stripe = next(each for each in made.readings if each.file.path.endswith("stripe_events.jsonl"))
    assert set(stripe.records["record_id"]) <= accounted_for(stripe), "the second event does not vanish"


@entries("tools only")
def test_tools_alone(path: str) -> None:
    made = telling(path)
    turns = made.made.turns.filter(kind="call").sort("happened_at", "position")
    spans = "spans" in path
    rows = [step["shown"] for step in canonical.conversation_steps(turns)]
    problems = canonical.difference([_named(line) for line in CALLS], [_named(line) for line in rows]) if spans else \
        canonical.difference(CALLS, rows)
    assert not problems, "\n".join([*problems, *canonical.decisions(made)])
    assert turns["is_error"].to_list() == [False, False, True, False, False]
    if not spans:
        assert made.made.sessions["session_id"].to_list() == ["mcp-sess-1"]
        tools = made.made.tools
        assert tools.height == 4 and tools["declared"].all() and tools["annotations"].null_count() == 0


def _named(line: str) -> str:
    return line.partition(" {")[0].partition(" null")[0]


@entries("one generation")
def test_one_generation_from_its_fragments(path: str) -> None:
    made = telling(path)
    turns = made.made.turns.sort("position")
    assert turns["kind"].to_list() == ["message", "call", "call"], canonical.decisions(made)
    assert turns["content"][0] == "The payment gateway timed out, so I am trying once more." and turns["role"][0] == "assistant"
    assert turns["tool"].to_list()[1:] == ["create_refund", "check_stock"]
    assert [orjson.loads(text) for text in turns["arguments"].to_list()[1:]] == [
        {"order_id": "LN-10482", "amount_cents": 2490, "reason": "damaged"}, {"sku": "LANT-CAFE-1"}]
    counts = [orjson.loads(text) for text in made.events["usage"].drop_nulls()]
    assert [(each["input_tokens"], each["output_tokens"]) for each in counts] == [(497, 66)]
    assert made.events["model"].drop_nulls().unique().to_list() == ["demo-model-1"]


@entries("preference pair")
def test_a_preference_pair(path: str) -> None:
    made = telling(path)
    rows = [step["shown"] for step in canonical.conversation_steps(made.made.turns)]
    problems = canonical.difference([step["shown"] for step in canonical.steps()][:6], rows)
    assert not problems, "\n".join([*problems, *canonical.decisions(made)])
    other = made.events.filter(content="Refunds are impossible.")
    assert other.height == 1 and "candidate 1" in other["lossy"].item(), "the answer that was not preferred is kept beside it"
    assert made.made.tools["declared"].to_list() == [True] * 4
