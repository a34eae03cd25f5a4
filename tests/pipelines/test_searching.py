"""Search of lists: by any word of a session, by what became of it; export under the same filters; policies in pairs."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from starlette.testclient import TestClient

from pipelines.browser.app import application
from pipelines.browser.guard import AccessGuard
from pipelines.browser.waterfall import waterfall
from pipelines.inspection.searching import terms_of
from pipelines.rollouts.pairing import difference_interval, pair_policies
from warehouse import records
from warehouse.errors import InputError
from warehouse.schema import schema_text
from warehouse.store import Store
from warehouse.vocabulary import OUTCOME_SQL, OUTCOMES, TERMS, outcome_of

BEGAN = datetime(2026, 3, 9, 10, tzinfo=UTC)
SESSIONS = ("first", "second", "third", "fourth")


def table(record: type[records.Record], **columns: Any) -> pl.DataFrame:
    n = next(len(values) for values in columns.values() if isinstance(values, list))
    own = {name: values if isinstance(values, list) else [values] * n for name, values in columns.items()}
    return pl.DataFrame({name: own.get(name, [None] * n) for name in records.frame_schema(record)},
                        schema=records.frame_schema(record))


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    """Four sessions on four days: each with a prompt, a request, a call, and an answer."""
    out = tmp_path_factory.mktemp("searched")
    with Store.open(out / "warehouse.duckdb") as store:
        n = len(SESSIONS)
        store.append("core.sessions", table(
            records.Session, session_id=list(SESSIONS), source="main", service="desk", n_messages=3, n_calls=1,
            started_at=[BEGAN + timedelta(days=place) for place in range(n)], ended_at=[
                BEGAN + timedelta(days=place, minutes=place) for place in range(n)],
            identity=["Ada", "Ada", "Bob", None], format="openai_completions", other_session_ids=[[]] * n))
        store.append("mart.outcomes", table(
            records.Outcome, session_id=list(SESSIONS), probability=[0.95, 0.5, 0.49, None], is_contested=False, model="m",
            signals="[]"))
        store.append("core.feedback", table(
            records.Feedback, feedback_id=["r"], session_id=["first"], name="thumbs", value="up", source="main"))
        for place, name in enumerate(SESSIONS):
            begun = BEGAN + timedelta(days=place)
            store.append("core.turns", table(
                records.Turn, turn_id=[f"{name}-{step}" for step in range(4)], session_id=name, service="desk",
                position=[0, 1, 2, 3], happened_at=[begun, begun, begun + timedelta(seconds=1), begun + timedelta(seconds=9)],
                kind=["message", "message", "call", "message"], role=["system", "user", None, "assistant"],
                content=["Be kind.", f"Please mend lamp {place}", '{"state": "Broken"}', "=It is the flux capacitor"
                         if place == 2 else "Done"],
                tool=[None, None, "look_up_lamp" if place % 2 else "mend_lamp", None],
                arguments=[None, None, json.dumps({"lamp": f"L-{place}"}), None], latency_ms=[None, None, 2000.0, None]))
        store.append("mart.decisions", table(
            records.Decision, stage="rewards", subject=["second"], kept=False, reason="no_known_success", detail="None."))
        store.publish()
    return TestClient(application(out, AccessGuard("a token of the tests", False)), base_url="http://127.0.0.1")


def listed(client: TestClient, **wanted: str) -> list[str]:
    return [row["session_id"] for row in client.get("/sessions.json", params=wanted).json()]


@pytest.mark.parametrize(("wanted", "expected"), [
    ({}, ["fourth", "third", "second", "first"]), ({"sort": "oldest first"}, list(SESSIONS)),
    ({"words": "FLUX"}, ["third"]), ({"words": "lamp mend_lamp"}, ["third", "first"]), ({"words": "l-3"}, ["fourth"]),
    ({"words": '"lamp 1"'}, ["second"]), ({"words": "ada"}, ["second", "first"]), ({"words": "fourth"}, ["fourth"]),
    ({"words": "ada flux"}, []), ({"words": "kind"}, []),
    ({"outcome": "succeeded"}, ["second", "first"]), ({"outcome": "failed"}, ["third"]),
    ({"outcome": "undecided"}, ["fourth"]), ({"tool": "mend_lamp"}, ["third", "first"]),
    ({"reason": "no_known_success"}, ["second"]), ({"feedback": "any"}, ["first"]), ({"feedback": "thumbs: up"}, ["first"]),
    ({"feedback": "none", "tool": "mend_lamp"}, ["third"]),
    ({"since": "2026-03-10", "until": "2026-03-11"}, ["third", "second"]),
    ({"sort": "longest first"}, ["fourth", "third", "second", "first"]),
    ({"sort": "least likely success first"}, ["third", "second", "first", "fourth"])])
def test_sessions_are_listed_by_words_and_by_what_became_of_them(
        client: TestClient, wanted: dict[str, str], expected: list[str]) -> None:
    assert listed(client, **wanted) == expected
    page = client.get("/sessions", params=wanted).text
    shown = [name for name in SESSIONS if f'href="/session?id={name}"' in page]
    assert shown == [name for name in SESSIONS if name in expected]


@pytest.mark.parametrize("wanted", [
    {"outcome": "splendid"}, {"sort": "by magic"}, {"since": "yesterday"}, {"words": "a b c d e f g h i"}])
def test_what_no_filter_takes_is_refused_with_a_hint(client: TestClient, wanted: dict[str, str]) -> None:
    for path in ("/sessions", "/sessions.csv"):
        assert client.get(path, params=wanted).status_code == 400
    with pytest.raises(InputError):
        terms_of(" ".join(map(str, range(9))))


def test_a_match_is_shown_with_a_link_to_its_message(client: TestClient) -> None:
    page = client.get("/sessions", params={"words": "flux"}).text
    assert "<mark>flux</mark> capacitor" in page and 'href="/session?id=third#t3"' in page
    session = client.get("/session", params={"id": "third"}).text
    assert 'id="t3"' in session and 'href="/session?id=third#t3"' in session


def test_a_list_is_exported_under_its_filters_and_no_cell_is_a_formula(client: TestClient) -> None:
    answer = client.get("/sessions.csv", params={"outcome": "succeeded"})
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert answer.headers["content-disposition"] == 'attachment; filename="sessions.csv"'
    assert [(row["session_id"], row["outcome"], row["started_at"]) for row in rows] == [
        ("second", "succeeded", "2026-03-10T10:00:00Z"), ("first", "succeeded", "2026-03-09T10:00:00Z")]
    link = 'href="/sessions.csv?outcome=succeeded"'
    assert link in client.get("/sessions", params={"outcome": "succeeded"}).text
    assert [row["reason"] for row in client.get("/rejected.json").json()] == ["no_known_success"]
    for path in ("families", "tasks", "rejected", "corrections", "unknowns", "episodes", "policies", "services", "funnel",
                 "results", "rollouts", "glossary"):
        for ending in ("csv", "json"):
            assert client.get(f"/{path}.{ending}").status_code == 200, (path, ending)


def test_lists_that_share_a_page_are_files_of_their_own(client: TestClient) -> None:
    assert [(row["service"], row["n_sessions"]) for row in client.get("/services.json").json()] == [("desk", 4)]
    assert [(row["stage"], row["kept"], row["n"]) for row in client.get("/funnel.json").json()] == [("rewards", False, 1)]
    assert {row["name"] for row in client.get("/glossary.json").json()} == {term.name for term in TERMS}
    page = client.get("/").text
    assert 'href="/services.csv"' in page and 'href="/funnel.json"' in page
    assert client.get("/tools.csv").status_code == 400 and client.get("/tools.csv", params={"id": "none"}).status_code == 404


def test_system_prompts_are_folded_and_calls_stand_in_a_waterfall(client: TestClient) -> None:
    page = client.get("/session", params={"id": "first"}).text
    assert "<summary>System prompt" in page and page.index("System prompt") < page.index("Be kind.")
    assert "1 call in 9.0 s" in page and 'class="bar b11 w22"' in page


def test_a_call_without_an_answer_is_a_mark_and_times_that_overlap_count_once() -> None:
    def call(place: int, at: float, ms: float | None) -> dict[str, object]:
        return {"kind": "call", "position": place, "tool": "t", "is_error": None, "happened_at": BEGAN + timedelta(seconds=at),
                "answered_at": None, "latency_ms": ms}

    picture = waterfall([call(0, 0, 4000), call(1, 2, 4000), call(2, 8, None), call(3, 9, 1000)])
    assert picture is not None and (picture.span_s, picture.calls_s) == (10.0, 7.0)
    assert [(bar.begins, bar.width) for bar in picture.bars] == [(0, 40), (20, 40), (80, 1), (90, 10)]
    assert waterfall([call(0, 0, None)]) is None and waterfall([]) is None


def test_one_threshold_and_one_word_for_an_outcome_everywhere(client: TestClient) -> None:
    assert [outcome_of(chance) for chance in (0.95, 0.5, 0.49, None)] == ["succeeded", "succeeded", "failed", "undecided"]
    view = schema_text()[schema_text().index("create or replace view sessions"):]
    view = view[:view.index(" as outcome")].partition("case ")[2]
    assert f"case {view}".replace("else 'undecided'", "when probability is null then 'undecided'") == OUTCOME_SQL
    page = client.get("/glossary").text
    assert all(f'id="{term.name}"' in page and term.definition.split(":")[0] in page for term in TERMS)
    assert client.get("/").text.count("outcome=") == len(OUTCOMES)


def episode(policy: str, task: str, attempt: int, reward: float | None) -> dict[str, object]:
    return {"policy": policy, "task_id": task, "seed": 0, "perturbations": [], "attempt": attempt, "reward": reward,
            "content_digest": "c", "rewards_digest": "r", "episode_id": f"{policy}{task}{attempt}"}


def test_policies_are_compared_in_pairs_and_the_largest_difference_comes_first() -> None:
    rows = [episode("a", "t1", n, 1.0) for n in range(12)] + [episode("b", "t1", n, 0.0) for n in range(12)]
    rows += [episode("a", "t2", n, float(n < 1)) for n in range(2)] + [episode("b", "t2", n, 1.0) for n in range(2)]
    rows += [episode("a", "t3", 0, 1.0), episode("b", "t3", 0, None), episode("b", "t3", 1, 1.0)]
    paired = pair_policies(rows, "a", "b")
    assert [(row.task_id, row.difference, row.n_pairs) for row in paired.tasks] == [("t1", 1.0, 12), ("t2", -0.5, 2)]
    sure, unsure = paired.tasks
    assert sure.is_certain and 0.3 < sure.low < 0.5 and sure.high == 1.0
    assert not unsure.is_certain and unsure.second_episode == "bt21"
    assert paired.n_alone == 2 and paired.overall.difference == 0.25
    other = pair_policies(rows, "b", "a")
    assert [(-row.high, -row.low) for row in other.tasks] == [(row.low, row.high) for row in paired.tasks]


def test_the_interval_of_a_difference_narrows_with_pairs_and_holds_what_was_seen() -> None:
    wide, narrow = difference_interval(3, 1, 8), difference_interval(30, 10, 80)
    assert wide[0] < narrow[0] < 0.25 < narrow[1] < wide[1] and difference_interval(0, 0, 1)[0] > -1.0 - 1e-9


def test_no_other_ending_and_no_single_page_is_a_file(client: TestClient) -> None:
    assert client.get("/sessions.xml").status_code == 404 and client.get("/task.csv").status_code == 404
