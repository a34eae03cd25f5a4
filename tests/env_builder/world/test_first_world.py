"""A world that all sessions share, looked at before it is known what acts change: laid out when asked, and as if at once."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import product

from env_builder.runtime.world import View
from env_builder.world import history
from env_builder.world.replay import LoggedStep
from env_builder.world.spans import Touch
from tests.env_builder.world.calls import call

BEGAN = datetime(2031, 5, 1, tzinfo=UTC)
STARTS: dict[str, datetime | None] = {f"s{n}": BEGAN + timedelta(hours=n) for n in range(12)}


def steps() -> list[LoggedStep]:
    """Twelve sessions that look at things and paint one each; a thing of which only a painted look is on record, too."""
    done: list[LoggedStep] = []
    for n, (session, begun) in enumerate(STARTS.items()):
        for position, (key, painted) in enumerate([("T1", False), (f"T{n % 4}", True), ("T2", False)]):
            text = json.dumps({"thing": key, "colour": f"c{n // 5}", "size": [n // 7], "kind": "toy"})
            act = painted or (n == 3 and key == "T2")
            at = None if begun is None else begun + timedelta(minutes=position)
            made = call("paint" if act else "see", {"thing": key}, text, session, position)._replace(
                called_at=at, event_id=f"{session}-{position}")
            after = (("paint", "{}"),) if position == 2 else ()
            done.append(LoggedStep(made, after, ("thing", key, text), act, act, None, ()))
    return done


def test_a_record_that_is_laid_out_when_it_is_looked_at_is_what_all_laid_out_at_once_show() -> None:
    done = steps()
    records = history.SharedRecords("main", done, STARTS, {})
    lazy = history.first_world("main", done, STARTS, {}, {"see"}, records)
    whole = history.base_of(history.facts("main", done, STARTS, True, None, {}, {"see"}))
    assert list(lazy.facts) == list(whole.facts) == [("thing", f"T{n}") for n in range(4)]
    assert lazy.answers == whole.answers
    instants = [None, *(history.instant(BEGAN + timedelta(minutes=30 * n)) for n in range(-2, 26))]
    for name, session, at in product([*whole.facts, ("thing", "T9")], [*STARTS, "another"], instants):
        view = View(at, frozenset((session,)))
        assert lazy.document(name, view) == whole.document(name, view)


def test_records_that_were_gone_through_before_are_touched_like_new_ones() -> None:
    done = steps()
    records = history.SharedRecords("main", done, STARTS, {})
    assert history.first_world("main", done, STARTS, {}, set(), records).document(
        ("thing", "T1"), View(None, frozenset(("another",)))) is not None
    painted = Touch(BEGAN + timedelta(hours=4, minutes=30), frozenset(("colour",)), lambda part: {**part, "colour": "c1"})
    touches = {("thing", "T1"): [painted]}
    again = history.facts("main", done, STARTS, True, touches, {}, None, records)
    assert again == history.facts("main", done, STARTS, True, touches, {})
    assert again != history.facts("main", done, STARTS, True, {}, {})
