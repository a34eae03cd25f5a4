"""Error flags that a service never raises say nothing."""

from __future__ import annotations

import polars as pl

from env_builder.world.calls import calls_of as logged_calls_of
from extractors.tasks.arguments import calls_of
from warehouse.records import drop_silent_flags, refusals_flagged

FAILED = '{"status": "error", "error": {"code": "not_found"}}'


def turns(flags: dict[str, list[bool | None]]) -> pl.DataFrame:
    """Return calls that all answered with an error in words, by service."""
    return pl.DataFrame(
        [{"session_id": service, "service": service, "position": n, "turn_id": f"{service}{n}", "kind": "call", "tool": "find",
          "arguments": "{}", "content": FAILED, "is_error": flag, "happened_at": None, "result_id": None, "requestor": None}
         for service, mine in flags.items() for n, flag in enumerate(mine)],
        schema_overrides={"is_error": pl.Boolean, "happened_at": pl.Datetime("us", "UTC")})


def test_a_flag_that_a_service_never_raises_is_cleared() -> None:
    cleared = drop_silent_flags(turns({"never": [False, None], "sometimes": [False, True]}))
    assert cleared["is_error"].to_list() == [None, None, False, True]
    assert drop_silent_flags(turns({"none": [None]}))["is_error"].to_list() == [None]


def answers(tool: str, contents: list[str], flag: bool | None = None) -> pl.DataFrame:
    """Return calls of one tool with these answers."""
    return turns({tool: [flag] * len(contents)}).with_columns(pl.Series("content", contents), tool=pl.lit(tool))


def test_a_sentence_of_a_tool_that_answers_with_values_is_a_refusal() -> None:
    made = answers("login", ['{"token": "t1"}', "wrong e-mail or PIN", "null", '{"token": "t2"}'])
    assert refusals_flagged(made)["is_error"].to_list() == [None, True, None, None]


def test_a_text_that_a_tool_keeps_and_a_name_of_one_word_are_no_refusals() -> None:
    notes = answers("note_of", ["null", "null", "leave it at the door", "ring twice, please", "null"])
    ids = answers("find_user", ["null", "mia_li_3668", "null", "mia_li_3668"])
    assert not refusals_flagged(pl.concat([notes, ids]))["is_error"].any()
    refusing = answers("drop_user", ["null", "token is not valid", "null", "token is not valid"])
    assert refusals_flagged(refusing)["is_error"].to_list() == [None, True, None, True]


def test_a_sentence_is_no_refusal_of_a_tool_that_lists_or_speaks_or_whose_log_flags() -> None:
    lists = answers("search", ['[{"id": 1}]', "No events were there.", "[]"])
    speaks = answers("book", ["Booked R1.", "Booked R2.", '{"code": 3}'])
    assert not refusals_flagged(pl.concat([lists, speaks]))["is_error"].any()
    flagged = answers("login", ['{"token": "t1"}', "Welcome back, friend"]).with_columns(is_error=pl.lit(False))
    raised = answers("other", ["no"], True).with_columns(service=pl.lit("login"))
    assert refusals_flagged(pl.concat([flagged, raised]))["is_error"].to_list() == [False, False, True]


def test_the_answer_decides_where_no_flag_is_ever_raised() -> None:
    effects = pl.DataFrame({"service": ["never"], "tool": ["find"], "effect": ["read"]})
    never, sometimes = turns({"never": [False, False]}), turns({"sometimes": [False, True]})
    assert calls_of(never, effects)["failed"].to_list() == [True, True]
    assert calls_of(sometimes, effects)["failed"].to_list() == [False, True]
    assert [each.failed for each in logged_calls_of(never)] == [True, True]
    assert [each.failed for each in logged_calls_of(sometimes)] == [False, True]


def test_the_flag_of_a_services_envelope_tells_failures_in_any_language() -> None:
    good, bad = '{"erfolg": true, "daten": {"nr": 1}}', '{"erfolg": false, "fehler": {"code": "VERSIONSKONFLIKT"}}'
    tools = ("lesen", "buchen", "suchen")
    several = pl.concat([answers(tool, [good, bad]) for tool in tools]).with_columns(service=pl.lit("s"))
    assert refusals_flagged(several)["is_error"].to_list() == [None, True] * 3
    states = ['{"offen": true, "platz": 1}', '{"offen": false, "platz": 2}']  # a state: the same fields follow
    doors = pl.concat([answers(tool, states) for tool in tools]).with_columns(service=pl.lit("s"))
    assert not refusals_flagged(doors)["is_error"].any()
    assert not refusals_flagged(answers("lesen", [good, bad]))["is_error"].any()  # one tool alone may mean anything by it


def test_a_status_and_a_reason_alone_refuse_where_records_are_usual() -> None:
    record, refusal = '{"job": "j1", "status": "ok"}', '{"status": "rejected", "reason": "no job \\"j9\\""}'
    jobs = answers("job", [record, refusal, record, '{"status": "queued", "message": "later"}'])
    assert refusals_flagged(jobs)["is_error"].to_list() == [None, True, None, None]
    claims = answers("claim", ['{"claim": "c1", "status": "rejected"}', refusal, record])  # there it is a state
    assert not refusals_flagged(claims)["is_error"].any()
    assert not refusals_flagged(answers("decide", [refusal, refusal, record]))["is_error"].any()
