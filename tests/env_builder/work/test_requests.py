"""The request of a task: what the person received that tells the work, or what the person told an agent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from env_builder.company.calls import AgentPrompt
from env_builder.company.conventions import agent_prompts
from env_builder.runtime.company import CompanyWorld
from env_builder.work.requests import TaskRequest, WorkRequests
from env_builder.work.stretches import WorkHabits
from extractors.apps import record_kinds
from extractors.apps.version import AppVersion
from extractors.work.events import find_events
from tests.env_builder.work.test_demonstrations import ACCOUNTS, acted
from tests.env_builder.work.test_solving import orders
from tests.small_company import ADA, BEN, CLEO, NOON, fields_of, mail_of, world_of

FAR = "pat@far.example"
ASKED = "An order\n\nPlease send 500 loaves of rye."


def second(at: float) -> int:
    return round((NOON + at) * 1_000_000)


def found(between: list[AppVersion], prompts: list[AgentPrompt] | None = None, person: str = ADA) -> TaskRequest | str:
    """Return the request of a row that Ada entered: somebody asked for loaves, and other things were written after it."""
    begin = [*acted("", fields_of("sheet", "file-9", -9e5, name="Rye", owner=ADA, readers=[], **{"!All": [["Who", "Loaves"]]})),
             *acted(FAR, mail_of("<q@far.example>", 90_000, FAR, [ADA], "An order", "Please send 500 loaves of rye."))]
    done = acted(ADA, fields_of("sheet", "file-9", 91_000, **{"!All": [["Who", "Loaves"], [FAR, "500"]]}))
    versions = [*orders(), *begin, *between, *done]
    events = find_events(versions, ACCOUNTS)
    world = CompanyWorld(sorted([*world_of().versions, *versions], key=lambda version: version.at))
    requests = WorkRequests(events, world, WorkHabits(events, record_kinds(), ACCOUNTS), prompts or ())
    own = [event for event in events if event.at == second(91_000)]
    return requests.find([event for event in events if second(89_000) < event.at < second(91_000)], own, person)


def letter(at: float, sender: str, to: str, subject: str, body: str) -> list[AppVersion]:
    return acted(sender, mail_of(f"<{at}@mill.example>", at, sender, [to], subject, body))


def test_the_last_words_that_tell_the_work_are_the_opening() -> None:
    request = found(letter(90_500, FAR, ADA, "Re: An order", "Make it 500 loaves, of spelt."))
    assert isinstance(request, TaskRequest) and request.opening == "Re: An order\n\nMake it 500 loaves, of spelt."
    assert request.starts_at == second(90_500)


@pytest.mark.parametrize(("subject", "body"), [("", "ok :+1:"), ("Thanks", "thanks!"), ("", "https://mill.example/notes"),
                                               ("News", "Unsubscribe at any time.")])
def test_words_that_say_nothing_are_received_but_what_was_asked_before_is_the_opening(subject: str, body: str) -> None:
    request = found(letter(90_500, BEN, ADA, subject, body))
    assert isinstance(request, TaskRequest) and request.opening == ASKED
    assert request.starts_at == second(90_500), "the task begins when all had been said"


def test_what_another_person_was_told_is_no_request() -> None:
    request = found(letter(90_500, BEN, CLEO, "Re: An order", "The 500 loaves of rye are on their way."))
    assert isinstance(request, TaskRequest) and request.opening == ASKED and request.starts_at == second(90_000)


def test_where_nothing_received_tells_the_work_there_is_no_task() -> None:
    assert found([], person=CLEO) == "not_asked"
    assert found(letter(90_500, BEN, CLEO, "", "ok"), person=CLEO) == "request_says_nothing"


@pytest.mark.parametrize(("at", "until", "person", "text", "is_taken"), [
    (90_800, 91_000, ADA, "Enter Pat's rye.", True), (90_800, 90_900, ADA, "It ended before.", False),
    (89_000, 91_000, ADA, "It began before the request.", False), (90_800, 91_000, BEN, "Of another person.", False),
    (90_800, 91_000, ADA, "", False)])
def test_a_session_that_spans_the_work_gives_its_opening(at: float, until: float, person: str, text: str, is_taken: bool
                                                         ) -> None:
    request = found([], [AgentPrompt(second(at), second(until), person, text)])
    assert isinstance(request, TaskRequest) and request.act.actor == FAR
    assert (request.opening, request.starts_at) == ((text, second(at)) if is_taken else (ASKED, second(90_000)))


def test_of_two_sessions_that_span_the_work_none_is_taken() -> None:
    request = found([], [AgentPrompt(second(90_800 + number), second(91_000), ADA, f"Do {number}.") for number in range(2)])
    assert isinstance(request, TaskRequest) and request.opening == ASKED


def test_a_prompt_is_all_that_was_said_before_the_first_call_or_empty() -> None:
    begin = datetime(2026, 3, 2, tzinfo=UTC)
    rows = [("a", 0, "message", "system", "Be kind."), ("a", 1, "message", "user", "Bake."), ("a", 2, "call", None, "done"),
            ("b", 0, "message", "user", "Bake."), ("b", 1, "call", None, "done"), ("b", 2, "message", "user", "More."),
            ("c", 0, "message", "user", "Nobody's.")]
    turns = pl.DataFrame([(*row, begin + timedelta(seconds=row[1]), None) for row in rows], orient="row", schema={
        "session_id": pl.String, "position": pl.Int64, "kind": pl.String, "role": pl.String, "content": pl.String,
        "happened_at": pl.Datetime("us", "UTC"), "answered_at": pl.Datetime("us", "UTC")})
    sessions = pl.DataFrame({"session_id": ["a", "b", "c"], "identity": [ADA, BEN, None]})
    at = round(begin.timestamp() * 1_000_000)
    assert agent_prompts(sessions, turns) == [AgentPrompt(at, at + 2_000_000, BEN, ""),
                                              AgentPrompt(at + 1_000_000, at + 2_000_000, ADA, "Bake.")]
