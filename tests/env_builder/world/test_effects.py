"""Effects from looks: the fewest tools that explain the changes; declarations are a hint."""

from __future__ import annotations

import pytest

from env_builder.world import documents, effects
from env_builder.world.betweens import Between
from env_builder.world.calls import LoggedCall
from env_builder.world.effects import Declared, Effect
from tests.env_builder.world.calls import call

NEW, OLD = '{"door": "D-1", "state": "open"}', '{"door": "D-1", "state": "shut"}'


def session(name: str, *steps: tuple[str, str]) -> list[LoggedCall]:
    arguments = {
        "look": {"door": "D-1"}, "push": {"door": "D-1"}, "muse": {"thought": f"{name}: perhaps the door D-1 is open by now"},
        "ring": {"house": f"H-{name}"}}
    return [call(tool, arguments[tool], content, name, position) for position, (tool, content) in enumerate(steps)]


def found(calls: list[LoggedCall], **hints: Effect) -> dict[str, Effect]:
    declared = {tool: Declared(hint) for tool, hint in hints.items()}
    return effects.find(calls, documents.find(calls), shared=False, declared=declared).effect


def test_blames_what_explains_most_and_not_what_stood_by() -> None:
    """`muse` is called only before changes, `push` before all of them and once in vain."""
    calls: list[LoggedCall] = []
    for n in range(12):
        musing = [("muse", "")] if n < 5 else []
        calls += session(f"s{n}", ("look", OLD), *musing, ("push", "ok"), ("look", OLD if n == 11 else NEW))
    for n in range(12, 16):
        calls += session(f"s{n}", ("look", OLD), ("look", OLD))
    assert found(calls) == {"look": "read", "push": "write", "muse": "constant"}


@pytest.mark.parametrize(("hint", "wanted"), [("unknown", "unknown"), ("read", "constant")])
def test_a_declaration_decides_where_nothing_was_seen(hint: Effect, wanted: str) -> None:
    calls = [step for n in range(6) for step in session(f"s{n}", ("ring", "ok"))]
    assert found(calls, ring=hint)["ring"] == wanted
    assert found(calls)["ring"] == "unknown"


def asked_for_kinds(*kinds: str) -> list[LoggedCall]:
    """Somebody asks twice of eighteen locks, three of which are of the second kind, and the doors are as they were."""
    return [one for n in range(36) for one in [
        *session(f"s{n}", ("look", OLD)), call("sort", {"lock": f"L-{n % 18}", "door": "D-1"}, kinds[n % 6 == 0], f"s{n}", 1),
        *[step._replace(position=2) for step in session(f"s{n}", ("look", OLD))]]]


def test_what_says_of_each_question_which_kind_it_is_of_looks() -> None:
    assert found(asked_for_kinds("new", "rusty"))["sort"] == "read"
    assert found(asked_for_kinds("lock turned", "no lock turned"))["sort"] == "unknown", "it confirms"
    assert found(asked_for_kinds("new", "rusty")[:18 * 3])["sort"] == "unknown", "nothing was asked twice"


def mailed(to: str) -> list[LoggedCall]:
    """Somebody writes to an address about a door, and the door is as it was."""
    return [one for n in range(6) for one in [
        *session(f"s{n}", ("look", OLD)), call("tell", {"to": to, "door": "D-1"}, f"told {n}", f"s{n}", 1),
        *[step._replace(position=2) for step in session(f"s{n}", ("look", OLD))]]]


@pytest.mark.parametrize(("to", "wanted"), [
    ("ann@example.org", "outside"), ("+44 20 7946 0958", "outside"), ("https://example.org/doors", "outside"),
    ("the porter", "unknown")])
def test_what_goes_to_an_address_and_leaves_things_alone_acts_outside(to: str, wanted: str) -> None:
    assert found(mailed(to))["tell"] == wanted
    assert found(mailed(to), tell="unknown")["tell"] == wanted, "a declaration is a hint"
    assert found(mailed(to)[:3])["tell"] == "unknown", "seldom seen"


def test_what_was_seen_counts_more_than_a_declaration() -> None:
    calls = [step for n in range(6) for step in session(f"s{n}", ("look", OLD), ("push", "ok"), ("look", NEW))]
    assert found(calls, push="read")["push"] == "write"


def between(*tools: str, changed: bool = False) -> Between:
    return Between("look", False, frozenset(tools), frozenset(["state"] if changed else []))


def test_acts_that_stood_together_between_equal_looks_all_keep() -> None:
    """`push` changes what is seen, `paint` and `polish` were never alone, `scrape` only where it may have done it."""
    seen = [between("push", changed=True)] * 4 + [between("paint", "polish")] * 4 + [between("paint", "push", changed=True)]
    assert effects.relation_of([*seen, *[between("paint", "scrape", changed=True)] * 4]) == {
        "push": {"look": "changes"}, "polish": {"look": "keeps"}}
    assert effects.relation_of(seen) == {
        "push": {"look": "changes"}, "paint": {"look": "keeps"}, "polish": {"look": "keeps"}}


def test_blames_what_was_given_the_value_that_appears() -> None:
    """Both were called between all looks; what `rename` was given stands in the second look, `peek`'s file does not."""
    calls: list[LoggedCall] = []
    for n in range(4):
        name, letter = f"Room {n} North", "a long letter from the landlord of whom we rent, about what to do with all rooms now"
        calls += [call("shown", {}, "Name: Hall", f"s{n}", 0), call("peek", {"file": "letter.txt"}, letter, f"s{n}", 1),
                  call("rename", {"name": name}, "done", f"s{n}", 2), call("shown", {}, f"Name: {name}", f"s{n}", 3)]
    does = found(calls)
    assert (does["rename"], does["peek"]) == ("write", "read")


def test_lists_of_the_same_things_tell_something() -> None:
    """`latest` repeats the same lines for every number asked for: no word of it is rare, and it only looks."""
    lines = [f"line {n}: paid {n * 7} to account number {n * 1000} for thing {n}" for n in range(12)]
    calls = [call("latest", {"n": n}, "\n".join(lines[-n:]), f"s{n}{again}") for n in (8, 9, 10, 11, 12) for again in "ab"]
    assert found(calls)["latest"] == "read"


def test_what_answers_with_lists_in_any_notation_only_looks() -> None:
    calls = [call("find", {"of": f"word {n}"}, f"- name: thing {n}\n  size: {n * 31}\n- name: other {n}\n  size: {n}", f"s{n}")
             for n in range(6)]
    assert found(calls)["find"] == "read"


def test_what_is_changed_nearly_always_is_not_said_to_be_kept_however_much_drifts() -> None:
    def seen(act: str, n_changed: int, n_kept: int) -> list[Between]:
        tools = frozenset({act} - {""})
        return [Between("show", False, tools, frozenset({"sum"} if i < n_changed else ())) for i in range(n_changed + n_kept)]

    drift = seen("", 3, 3)
    assert effects.relation_of([*drift, *seen("pay", 9, 0)]) == {}
    assert effects.relation_of([*drift, *seen("pay", 5, 5)]) == {"pay": {"show": "keeps"}}
    assert effects.relation_of([*seen("", 0, 9), *seen("pay", 9, 0)]) == {"pay": {"show": "changes"}}


def dropped(asked: str) -> effects.Effects:
    """Somebody looks at a course of a term, a course of that term is dropped, and the first is as it was."""
    calls = [one for n in range(12) for term in [f"T{n % 2}"] for one in [
        call("seats", {"code": "ART-1", "term": term}, f"hall {n * 91} has {n * 37} free", f"s{n}", 0),
        call("drop", {"code": asked, "term": term}, "ok", f"s{n}", 1),
        call("seats", {"code": "ART-1", "term": term}, f"hall {n * 91} has {n * 37} free", f"s{n}", 2)]]
    others = [one for n in range(9) for course in [{"code": f"LAW-{n}", "term": f"T{n % 2}"}] for one in [
        call("seats", course, f"hall {n * 83 + 5} has {n * 29 + 7} free", f"t{n}"), call("drop", course, "ok", f"t{n}", 1)]]
    return effects.find(calls + others, documents.find(calls + others), shared=False, declared={})


def test_a_look_is_kept_by_what_names_all_of_its_question() -> None:
    assert dropped("ART-1").relation.get("drop") == {"seats": "keeps"}
    assert dropped("BIO-7").relation.get("drop") is None, "of the term alone nothing follows"


@pytest.mark.parametrize(("tool", "wanted"), [("set_party", "unknown"), ("count_party", "read")])
def test_what_says_that_it_changes_is_no_read_for_answering_twice_alike(tool: str, wanted: str) -> None:
    calls = [call(tool, {"room": f"R-{n}", "guests": ["Ann"] * n}, f"{n} guests of {n * 37}", f"s{n}", place)
             for n in range(4) for place in range(2)]
    assert found(calls)[tool] == wanted
    assert found([one._replace(session_id=f"{again}{one.session_id}") for again in "ab" for one in calls])[tool] == "read"


def test_a_presumed_read_with_nothing_seen_around_it_is_unseen() -> None:
    alone = [call("get_fee", {"door": f"D-{n}"}, f"the fee is {n * 317}", f"s{n}", 1) for n in range(8)]
    around = [call("look", {"door": f"D-{n}", "of": "old"}, f"door {n} is number {n * 91}", f"s{n}", place)
              for n in range(8) for place in (0, 2)]
    assert effects.find(alone, documents.find(alone), shared=False, declared={}).unseen == {"get_fee"}
    calls = sorted(alone + around, key=lambda one: (one.session_id, one.position))
    assert not effects.find(calls, documents.find(calls), shared=False, declared={}).unseen


def test_a_tool_that_fails_when_asked_again_what_just_worked_did_something() -> None:
    calls = [each for session in range(4) for each in (
        call("enter", {"door": session}, f'{{"door": {session}, "is": "in"}}', f"s{session}"),
        call("enter", {"door": session}, "Error: already in", f"s{session}", 1),
        call("guests", {"door": session}, f'{{"door": {session}, "n": {session}}}', f"s{session}", 2),
        call("guests", {"door": session}, f'{{"door": {session}, "n": {session}}}', f"s{session}", 3))]
    induced = effects.find(calls, documents.find(calls), False, {})
    assert induced.effect["enter"] not in ("read", "pure", "constant")
    assert induced.relation["enter"]["enter"] == "changes"
    assert induced.effect["guests"] == "read"
