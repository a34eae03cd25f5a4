"""Calls that are only confirmed: by what exists, what was accepted and what was done before; silent on anything else."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from env_builder.behaviour.confirmations import Existence, confirm_rule
from env_builder.runtime.confirmations import NO_NAME, EpisodeWrite, NamedEntity, answers_of, confirmation, naming_of
from env_builder.world.replay import LoggedStep
from tests.env_builder.world.calls import call

NOTES = [f"N{n:03}" for n in range(40)]
TEAMS = ("red", "blue", "green")
LISTING = {"rule": "rows", "class": "list_notes[]", "depth": 1, "columns": []}


class Service:
    """Notes that can be listed, sent to a team, dropped and made."""

    def __init__(self) -> None:
        self.notes, self.n_made = set(NOTES), 0

    def answer(self, tool: str, given: dict[str, Any]) -> str:
        if tool == "list_notes":
            return json.dumps([{"note": note} for note in sorted(self.notes) if note.startswith(given["from"])])
        if tool == "make":
            self.n_made += 1
            self.notes.add(f"N{99 + self.n_made:03}")
            return f"made N{99 + self.n_made:03}"
        if given["note"] not in self.notes:
            return f"{tool}: not found"
        if tool == "send" and given["team"] not in TEAMS:
            return "no such team"
        if tool == "drop":
            self.notes.remove(given["note"])
        return f"{tool}: done"


def sessions(n: int, seed: int = 0) -> list[LoggedStep]:
    random = Random(seed)
    steps: list[LoggedStep] = []
    for session in range(n):
        service = Service()
        asked: list[tuple[str, dict[str, Any]]] = [("list_notes", {"from": f"N0{random.randrange(4)}"})]
        for _ in range(4):
            note = random.choice([*NOTES, *NOTES, "N777", "last note", "note-1", "N888"])
            team, drop = random.choice([*TEAMS, f"team {random.randrange(99)}"]), ("drop", {"note": note})
            send, make = ("send", {"note": note, "team": team, "words": f"hi {session}"}), ("make", {"text": f"t{session}"})
            asked += random.choice([[send], [drop], [drop, drop], [make]])
        for position, (tool, given) in enumerate(asked):
            one = call(tool, given, service.answer(tool, given), f"s{session}", position)
            acts = tool != "list_notes"
            steps.append(LoggedStep(one, (), None, acts, acts and not one.failed, None, ()))
    return steps


@pytest.fixture(scope="module")
def rules() -> dict[str, dict[str, Any]]:
    existence = Existence(sessions(250), {"list_notes": LISTING})
    found = {tool: confirm_rule(tool, existence, True) for tool in ("send", "drop", "make")}
    return {tool: json.loads(json.dumps(rule)) for tool, rule in found.items() if rule is not None}


def replied(rule: dict[str, Any], tool: str, given: dict[str, Any], writes: list[EpisodeWrite]) -> str | None:
    named = given.get(str(rule["argument"]))
    naming: NamedEntity = NO_NAME if named is None else naming_of(rule, named, named in NOTES, writes)
    reply = confirmation(rule, given, naming, answers_of(tool, writes))
    return None if reply is None else reply[0]


def test_confirms_what_exists_and_was_accepted(rules: dict[str, dict[str, Any]]) -> None:
    rule = rules["send"]
    assert (rule["argument"], rule["sources"], sorted(rule["accepted"])) == ("note", [["list_notes[]", "note"]], ["team"])
    assert replied(rule, "send", {"note": "N007", "team": "red", "words": "new"}, []) == "send: done"
    assert replied(rule, "send", {"note": "N007", "team": "mauve", "words": "new"}, []) is None
    assert replied(rule, "send", {"note": "N555", "team": "red", "words": "new"}, []) is None
    assert replied(rule, "send", {"note": "N007", "team": "red"}, []) is None


def test_says_that_nothing_has_a_name_that_was_only_refused_or_of_another_shape(rules: dict[str, dict[str, Any]]) -> None:
    assert replied(rules["drop"], "drop", {"note": "N777"}, []) == "drop: not found"
    assert replied(rules["drop"], "drop", {"note": "whatever note"}, []) == "drop: not found"


def test_knows_what_write_calls_did_before(rules: dict[str, dict[str, Any]]) -> None:
    dropped = [EpisodeWrite("drop", {"note": "N007"}, "drop: done")]
    assert rules["drop"]["after"]["drop"] == "missing"
    assert replied(rules["drop"], "drop", {"note": "N007"}, dropped) == "drop: not found"
    assert replied(rules["drop"], "drop", {"note": "N007"}, [dropped[0]._replace(answer=None)]) is None
    assert replied(rules["drop"], "drop", {"note": "N007"}, [dropped[0]._replace(tool="unheard of")]) is None


def test_counts_confirmations(rules: dict[str, dict[str, Any]]) -> None:
    made = [EpisodeWrite("make", {"text": "a"}, "made N100")]
    assert replied(rules["make"], "make", {"text": "b"}, []) == "made N100"
    assert replied(rules["make"], "make", {"text": "b"}, made) == "made N101"
    assert replied(rules["make"], "make", {"text": "b"}, [made[0]._replace(answer=None)]) is None


def test_is_silent_where_calls_fail_for_no_reason_that_shows() -> None:
    random = Random(1)
    steps = [step._replace(call=step.call._replace(content="not now", failed=True))
             if step.call.tool != "list_notes" and random.random() < 0.2 else step for step in sessions(250)]
    existence = Existence(steps, {"list_notes": LISTING})
    assert all(rule is None or rule["confirms"] is None
               for tool in ("send", "drop", "make") for rule in [confirm_rule(tool, existence, True)])


def mails(refused: str = "") -> list[LoggedStep]:
    """Return calls that send notes to addresses, most of which one session alone gives. `refused`: one that is not accepted."""
    steps: list[LoggedStep] = []
    for n in range(96):
        note, to = NOTES[n % 17], f"who{n}@inn.org" if n % 3 else "all@inn.org"
        to = refused if refused and n % 10 == 4 else "nobody" if n % 10 == 5 else to
        asked = {"list_notes": ({"from": "N0"}, json.dumps([{"note": each} for each in NOTES])),
                 "mail": ({"note": note, "to": to}, "error: no address" if to in (refused, "nobody") else "mailed")}
        for place, (tool, (given, content)) in enumerate(asked.items()):
            one = call(tool, given, content, f"s{n}", place)
            steps.append(LoggedStep(one, (), None, tool == "mail", tool == "mail" and not one.failed, None, ()))
    return steps


def mailed(steps: list[LoggedStep], to: str) -> str | None:
    rule = confirm_rule("mail", Existence(steps, {"list_notes": LISTING}), True)
    assert rule is not None
    reply = confirmation(rule, {"note": "N003", "to": to}, naming_of(rule, "N003", True, []), [])
    return None if reply is None else reply[0]


def test_many_accepted_values_of_one_kind_speak_for_others_of_it() -> None:
    assert mailed(mails(), "new@inn.org") == "mailed"
    assert mailed(mails(), "new") is None


def test_a_refused_value_of_the_kind_speaks_against_others_of_it() -> None:
    assert mailed(mails("lost@inn.org"), "new@inn.org") is None
    assert mailed(mails("lost@inn.org"), "all@inn.org") == "mailed"
