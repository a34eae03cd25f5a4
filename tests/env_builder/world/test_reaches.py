"""Acts that change what they do not name: seen between looks, and minded by the environment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.world import View, World
from env_builder.world import documents, effects, history
from env_builder.world.calls import LoggedCall
from env_builder.world.replay import LoggedStep
from tests.env_builder.world.calls import call


def session(n: int, *steps: tuple[str, dict[str, Any], str]) -> list[LoggedCall]:
    return [call(*step, f"s{n}", position) for position, step in enumerate(steps)]


def relation(calls: list[LoggedCall], shared: bool = False) -> dict[str, dict[str, str]]:
    return effects.find(calls, documents.find(calls), shared, {}).relation


def summed(n: int, act: str, n_after: int) -> list[LoggedCall]:
    """Return a session that looks at a shed, acts on a box, and looks at the shed again."""
    shed, of = {"shed": ("north", "south")[n % 2]}, ("oak", "pine")[n % 2]
    box = {"box": f"box {n}x"}
    return session(n, ("sum", shed, f"12 boxes of {of}"), (act, box, "done"), ("sum", shed, f"{n_after} boxes of {of}"))


def test_an_act_that_changes_what_it_does_not_name_reaches_it() -> None:
    taken = [step for n in range(4) for step in summed(n, "take", 11)]
    dusted = [step for n in range(4, 8) for step in summed(n, "dust", 12)]
    known = relation([*taken, *dusted])
    assert known["take"]["sum"] == "reaches" and known.get("dust", {}).get("sum") != "reaches"
    assert "sum" not in relation([*taken[:3], *dusted]).get("take", {}), "once may be chance"


def test_an_act_on_what_a_listing_shows_is_no_reach() -> None:
    shed = {"shed": "north"}
    calls = [step for n in range(4) for step in session(
        n, ("list", shed, f"B-{n}1 B-{n}2"), ("take", {"box": f"B-{n}1"}, "gone"), ("list", shed, f"B-{n}2"))]
    assert relation(calls).get("take", {}).get("list") != "reaches"


def test_an_act_whose_answer_alone_names_the_place_changes_by_its_answer() -> None:
    days = [f"2026-04-0{n + 1}" for n in range(4)]
    calls = [step for n, day in enumerate(days) for step in session(
        n, ("plan", {"day": day}, f"E-{n} at 8:00"), ("shift", {"entry": f"E-{n}", "to": "9:30"}, f"now {day}"),
        ("plan", {"day": day}, f"E-{n} at 9:30"))]
    calls += [step for n, day in enumerate(days, 4) for step in session(n, *[("plan", {"day": day}, f"E-{n} at 8:00")] * 2)]
    assert relation(calls)["shift"]["plan"] == "answers"


def state(how: str, *answered: bool) -> EpisodeState:
    """Return an episode in which the act was made, which is on record or not."""
    rows = [{"tool": "sum", "arguments": '{"shed":"north"}', "content": "12 boxes", "is_error": False, "session": None,
             "from": None, "to": None, "after": [], "effects": []}]
    if answered:
        rows.append({**rows[0], "tool": "take", "arguments": '{"box":"B-1"}', "content": "gone"})
    take = {"tool": "take", "effect": "write", "class": None, "relation": {"sum": how}, "rules": [{"rule": "recorded"}]}
    look = {"tool": "sum", "effect": "read", "class": None, "relation": {}, "rules": [{"rule": "recorded"}]}
    played = EpisodeState(World([], rows), {"take": take, "sum": look}, View(None, frozenset()))
    played.call("take", {"box": "B-1"})
    return played


def test_what_an_act_reaches_is_unknown_after_it() -> None:
    tiers = {(how, answered): state(how, *[True] * answered).call("sum", {"shed": "north"}).tier
             for how in ("changes", "answers", "reaches") for answered in (True, False)}
    assert tiers == {("changes", True): "recorded", ("changes", False): "recorded", ("answers", True): "recorded",
                     ("answers", False): "unknown", ("reaches", True): "unknown", ("reaches", False): "unknown"}


def looked_again(alone: int, n: int = 6) -> list[LoggedCall]:
    """Sessions that look at a card twice, `alone` of them at once, the others after something else was done to it."""
    card = {"card": "C-1"}
    return [step for place in range(n) for step in session(
        place, ("show", card, '{"card": "C-1", "done": 0, "of": "mill"}'),
        *([] if place < alone else [("close", {"part": f"P-{place}"}, "closed")]),
        ("show", card, f'{{"card": "C-1", "done": {int(place >= alone)}, "of": "mill"}}'))]


def test_a_look_is_not_blamed_for_what_others_did_between() -> None:
    assert effects.find(looked_again(3), documents.find(looked_again(3)), False, {}).effect["show"] == "read"


def test_a_shared_answer_ends_with_the_act_that_is_known_to_change_it() -> None:
    at = datetime(2026, 4, 13, tzinfo=UTC)
    calls = [call("sum", {"shed": f"shed {n}"}, f"{n} boxes", f"{n}-{hour}")._replace(called_at=at + timedelta(hours=hour))
             for n in range(9) for hour in (1, 9)]  # by itself nothing changes
    calls += [call(tool, {"shed": "shed 7"}, "done", tool)._replace(called_at=at + timedelta(hours=hour))
              for tool, hour in (("take", 12), ("dust", 11))]
    steps = [LoggedStep(each, (), None, each.tool != "sum", each.tool != "sum", None, ()) for each in calls]
    relation = {"take": {"sum": "changes"}, "dust": {"sum": "keeps"}}
    touches = history.answer_touches(steps, relation, documents.find(calls))
    ends = {row["arguments"]: row["valid_to"] for row in history.facts("main", steps, {}, True, touches).recorded
            if row["session_id"] is None}
    assert ends['{"shed":"shed 6"}'] is None and ends['{"shed":"shed 7"}'] == at + timedelta(hours=12)
