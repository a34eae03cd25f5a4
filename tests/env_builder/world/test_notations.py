"""Answers in any notation are read as the values that they hold, and given back byte for byte."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from string import ascii_lowercase
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from env_builder.runtime.canonical import canonical
from env_builder.runtime.notations import read, written_in
from env_builder.world.calls import LoggedCall
from env_builder.world.history import instant
from env_builder.world.notations import applied, find

START = datetime(2026, 3, 2, 8, tzinfo=UTC)
WORDS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "Zs")), max_size=24)
NAMES = st.tuples(st.sampled_from(ascii_lowercase), st.text(f"{ascii_lowercase}_", max_size=8)).map("".join)
SCALARS = st.none() | st.booleans() | st.integers(-10 ** 6, 10 ** 6) | WORDS | st.sampled_from(
    ["2026-03-12", "yes", "null", "1.50", "007", "a: b", "- c", "it's", "#1", "", "08:15", "1e3", "true ", "x #y"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12)
RECORDS = st.lists(st.dictionaries(NAMES, VALUES, min_size=1, max_size=5), min_size=4, max_size=5)


def calls(contents: list[str], tool: str = "show") -> list[LoggedCall]:
    return [LoggedCall(f"s{place}", 0, tool, {"no": place}, canonical({"no": place}), content, None, False, None,
                       START + timedelta(hours=place), f"{tool}-{place}") for place, content in enumerate(contents)]


def table(rows: list[dict[str, Any]], separator: str = ";") -> str:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator="\n")
    writer.writerow(rows[0])
    writer.writerows(row.values() for row in rows)
    return text.getvalue()


SHOWN = [{"code": f"A{place}", "name": name, "left": place, "price": place + 0.5} for place, name in enumerate(
    ["Ada", "Ben, the second", "Cleo \"C\"", "Dóra"])]
SWITCHED = [{"radio": "ON" if place % 2 else "OFF", "signal": place} for place in range(5)]


@pytest.mark.parametrize(("kind", "dump", "values"), [
    ("json", lambda value: json.dumps(value, indent=2, ensure_ascii=False), SHOWN),
    ("literal", repr, SHOWN),
    ("yaml", lambda value: yaml.safe_dump(value, sort_keys=False, allow_unicode=True), SHOWN),
    ("yaml", lambda value: yaml.safe_dump(value, allow_unicode=True), [[each] for each in SHOWN]),
    ("table", lambda value: table([value]), SHOWN),
    ("table", lambda value: table(value, ","), [SHOWN[:2], SHOWN[1:], SHOWN]),
    ("markdown", lambda value: "| code | left |\n| --- | --- |\n" + "".join(
        f"| {row['code']} | {row['left']} |\n" for row in value), [SHOWN[:1], SHOWN[1:], SHOWN]),
    ("lines", lambda value: "\n".join(f"{name.title()}: {each}" for name, each in value.items()), SWITCHED),
])
def test_a_notation_is_found_read_and_given_back(kind: str, dump: Callable[[Any], str], values: list[Any]) -> None:
    told = [dump(value) for value in values]
    found = find(calls(told), {})["show"]
    assert [notation["kind"] for _, notation in found] == [kind]
    inside = applied(calls(told), {"show": found})
    shown = values
    if kind == "markdown":
        shown = [[{name: row[name] for name in ("code", "left")} for row in value] for value in values]
    wanted = [{name.title(): each for name, each in value.items()} for value in values] if kind == "lines" else shown
    if kind == "yaml" and isinstance(values[0], list):
        wanted = [[dict(sorted(value[0].items()))] for value in values]
    assert [call.parsed for call in inside] == wanted
    assert [written_in(call.content, found, None) for call in inside] == told


def test_texts_of_several_lines_and_times_to_the_microsecond_are_read_and_given_back_in_yaml() -> None:
    texts = ["Hello,\n\nhere is a line that is longer than eighty columns, so that it goes on in the line below it.\nIt's all.",
             "one\ntwo\n\n\nthree: four", "none"]
    rows = [{"body": text, "lines": [text, {"inner": text}], "sent": datetime(2031, 5, 1, 10, 30, place, place)}
            for place, text in enumerate(texts)]
    told = [yaml.safe_dump(row) for row in rows]
    found = find(calls(told), {})["show"]
    inside = applied(calls(told), {"show": found})
    assert [(call.parsed["body"], call.parsed["lines"][1]["inner"]) for call in inside] == [(text, text) for text in texts]
    assert [written_in(call.content, found, None) for call in inside] == told


@pytest.mark.parametrize("is_ascii", [True, False])
def test_texts_in_double_quotes_are_read_and_given_back_in_yaml(is_ascii: bool) -> None:
    texts = ["Größe und Straße, weit über achtzig Spalten hinaus, damit die Zeile für \"Jörg\" in der nächsten weitergeht.",
             "a space \nbefore the break, a tab\tand a back\\slash", "José 😀", "none"]
    rows = [{"body": text, "lines": [text, {"inner": text}], "place": place} for place, text in enumerate(texts)]
    told = [yaml.safe_dump(row, allow_unicode=not is_ascii) for row in rows]
    found = find(calls(told), {})["show"]
    inside = applied(calls(told), {"show": found})
    assert [(call.parsed["body"], call.parsed["lines"][1]["inner"]) for call in inside] == [(text, text) for text in texts]
    assert [written_in(call.content, found, None) for call in inside] == told
    assert found[0][1].get("ascii", False) == is_ascii


@pytest.mark.parametrize("dump", [json.dumps, lambda value: json.dumps(value, separators=(",", ":"))])
def test_json_after_the_line_of_a_status_is_read_and_given_back(dump: Callable[[Any], str]) -> None:
    answers = [f"HTTP/1.1 200 OK\n\n{dump(row)}\n" for row in SHOWN]
    found = find(calls(answers), {})["show"]
    inside = applied(calls(answers), {"show": found})
    assert [call.parsed for call in inside] == SHOWN
    assert [written_in(call.content, found, None) for call in inside] == answers
    assert find(calls([f"Room {row['code']}: {dump(row)}" for row in SHOWN]), {}) == {}, "what differs frames nothing"


@pytest.mark.parametrize("told", [
    ["Noted.", "Thank you.", "On the list."], ['{"a": 1}', '{"a": 2}', '{"a":3}'.replace(":", ": ")], ["a", "b\nc", "d"],
    ["Loan 1 of Ada.\nDue soon.", "Loan 2 of Ben.\nOverdue.", "Loan 3 of Cleo.\nDue soon."]])
def test_prose_and_plain_json_stay_as_they_are(told: list[str]) -> None:
    assert find(calls(told), {}) == {} and applied(calls(told), {}) == calls(told)


@pytest.mark.parametrize(("line", "kind"), [
    ("{name} {n}: {n} places in hall {letter}, open: yes", "sentence"), ("{name} {n}: {letter}", None), ("left: {n}", "yaml")])
def test_a_colon_in_a_sentence_makes_no_field(line: str, kind: str | None) -> None:
    lines = [line.format(name=name, n=n, letter="ABC"[n % 3]) for n in range(12) for name in ("Cinema", "Old theatre")]
    found = find(calls(lines), {})
    assert [notation["kind"] for _, notation in found.get("show", ())] == ([kind] if kind else [])


def test_two_serialisers_that_take_turns_are_told_apart_by_their_times() -> None:
    rows = [{"code": f"A{place}", "left": place} for place in range(40)]
    told = [repr(row) if place // 10 % 2 else f"(True, {row!r})" for place, row in enumerate(rows)]
    found = find(calls(told), {})
    assert [until is None for until, _ in found["show"]] == [False, False, False, True]
    inside = applied(calls(told), found)
    assert [call.parsed for call in inside] == rows
    for call, content in zip(inside, told, strict=True):
        assert written_in(call.content, found["show"], instant(call.called_at)) == content


def test_two_serialisers_that_mix_are_not() -> None:
    told = [repr({"left": place}) if place % 2 else f"(True, {{'left': {place}}})" for place in range(40)]
    assert find(calls(told), {}) == {}


@settings(max_examples=150, deadline=None)
@given(RECORDS, st.sampled_from([repr, lambda value: yaml.safe_dump(value, sort_keys=False, allow_unicode=True),
                                 lambda value: yaml.safe_dump(value), lambda value: json.dumps(value, indent=1)]))
def test_whatever_is_read_is_given_back(records: list[dict[str, Any]], dump: Callable[[Any], str]) -> None:
    told = [dump(record) for record in records]
    for notations in find(calls(told), {}).values():
        for content, record in zip(told, records, strict=True):
            inner = read(content, notations[0][1])
            assert inner == content or (json.loads(inner) == record and written_in(inner, notations, None) == content)
