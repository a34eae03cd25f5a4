"""Which entities exist as far as the log tells, and what that says of calls that nobody knows the answer to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from env_builder.runtime.answers import failed, parse
from env_builder.runtime.canonical import canonical
from env_builder.runtime.checks import CheckResult, EpisodeView, prepared
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.known_names import KnownNames, StoredNames
from env_builder.runtime.records import Episode
from env_builder.runtime.world import View, World


def row(tool: str, arguments: dict[str, Any], content: str, is_error: bool = False) -> dict[str, Any]:
    return {"tool": tool, "arguments": canonical(arguments), "content": content, "is_error": is_error, "from": None, "to": None,
            "session": None, "after": [], "effects": []}


ROWS = [row("doors", {}, " ".join(f"D-{n}" for n in range(30))),
        *(row("open", {"door": f"D-{n}", "how": "key" if n % 2 else "code", "note": "as asked"}, "done") for n in range(20)),
        row("open", {"door": "D-999"}, "error: no such door", True)]
NAMES = KnownNames([], {(each["tool"], each["arguments"]): [each] for each in ROWS})


def test_a_name_that_stands_nowhere_is_a_stranger() -> None:
    assert NAMES.strangers("open", {"door": "D-25", "how": "key"}) == []
    assert NAMES.strangers("open", {"door": "D-77"}) == ["D-77"]
    assert NAMES.strangers("open", {"door": "D-999"}) == ["D-999"], "a refusal shows nothing"


def test_where_sessions_name_what_nothing_showed_a_stranger_may_exist() -> None:
    """A user's booking number is new in each session; one that a list showed is not, and what nobody lists is not refused."""
    looks = [{**row("look", {"stay": f"ST{n}"}, f"stay ST{n} room R{n}"), "session": f"s{n}"} for n in range(20)]
    cancels = [{**row("cancel", {"stay": f"ST{n}", "room": f"R{n}"}, f"ST{n} done"), "session": f"s{n}"} for n in range(20)]
    lists = [{**row("stays", {}, " ".join(f"ST{n}" for n in range(20))), "session": "s30"}]
    rows = [*looks, *cancels]
    open_names, listed = (KnownNames([], {(each["tool"], each["arguments"]): [each] for each in own})
                          for own in (rows, [*rows, *lists]))
    assert open_names.strangers("cancel", {"stay": "ST77", "room": "R3"}) is None
    assert open_names.strangers("cancel", {"stay": "ST777", "room": "R3"}) == ["ST777"], "it looks like none"
    assert open_names.strangers("cancel", {"stay": "ST7", "room": "R77"}) == ["R77"], "the look had shown the room"
    assert listed.strangers("cancel", {"stay": "ST77", "room": "R3"}) == ["ST77"]
    assert open_names.strangers("cancel", {"stay": "ST7", "room": "R7"}) == []
    key_of = {f'{{"stay": "ST{n}", "room": "R{n}"}}': f"ST{n}" for n in range(20)}
    answers = {(each["tool"], each["arguments"]): [each] for each in cancels}
    shared = KnownNames(key_of.values(), answers, [("", document) for document in key_of], key_of)
    assert shared.strangers("cancel", {"stay": "ST77", "room": "R3"}) is None, "kept for all, seen by one"


def test_another_copy_of_what_is_known_is_no_stranger() -> None:
    rows = [row("books", {}, " ".join(f"emma-{n}" for n in range(1, 8))),
            *(row("lend", {"copy": f"emma-{n}"}, "done") for n in range(1, 7))]
    names = KnownNames([], {(each["tool"], each["arguments"]): [each] for each in rows})
    assert names.strangers("lend", {"copy": "emma-7"}) == [] and names.strangers("lend", {"copy": "emma-9"}) is None
    assert [names.strangers("lend", {"copy": copy}) for copy in ("emma-77", "faust-2")] == [["emma-77"], ["faust-2"]]


NUMBERED = [row("orders", {}, " ".join(f"ORD-10{n}" for n in range(10, 32))),
            *(row("cancel", {"order": f"ORD-10{n}"}, "done") for n in range(10, 36))]


def test_a_number_with_a_digit_more_than_all_others_names_nothing() -> None:
    names = known(NUMBERED)
    assert [names.strangers("cancel", {"order": order}) for order in ("ORD-10119", "ord-101")] == [["ORD-10119"], ["ord-101"]]
    assert [names.strangers("cancel", {"order": order}) for order in ("ORD-1099", "X-10119", "10119")] == [None] * 3
    assert known([*NUMBERED, row("cancel", {"order": "ORD-9"}, "done")]).strangers("cancel", {"order": "ORD-10119"}) is None


def test_a_value_that_is_none_of_the_choices_is_a_stranger() -> None:
    assert NAMES.strangers("open", {"door": "D-3", "how": "axe"}) == ["axe"]


def test_an_argument_with_values_that_one_call_alone_gave_has_no_list_of_values() -> None:
    seldom = [row("open", {"door": f"D-{n}", "how": f"trick{n}", "note": "as asked"}, "done") for n in range(20, 23)]
    names = KnownNames([], {(each["tool"], each["arguments"]): [each] for each in [*ROWS, *seldom, *_again(12)]})
    assert not names.strangers("open", {"door": "D-3", "how": "axe"})


def _again(n: int) -> list[dict[str, Any]]:
    return [row("open", {"door": f"D-{n % 20}", "how": "key", "note": f"once more {n}"}, "done") for n in range(n)]


def test_nobody_can_say_of_other_tools_and_arguments() -> None:
    assert NAMES.strangers("open", {"note": "as asked"}) is None
    assert NAMES.strangers("open", {"door": "D-3", "force": 1}) is None
    assert NAMES.strangers("burn", {"door": "D-3"}) is None


def test_amounts_are_no_names_and_no_list_to_choose_from() -> None:
    rows = [each for n in range(30) for each in (
        row("account", {"number": 7000 + n}, f"account {7000 + n} pays {40 + 10 * (n % 5)}"),
        row("pay", {"number": 7000 + n, "monthly": 40 + 10 * (n % 5)}, "done"))]
    names = KnownNames([], {(each["tool"], each["arguments"]): [each] for each in rows})
    assert names.strangers("pay", {"number": 7003, "monthly": 55}) == [], "between amounts that were taken"
    assert names.strangers("pay", {"number": 7003, "monthly": 900}) is None, "nobody can say how much is too much"
    assert names.strangers("pay", {"number": 9999, "monthly": 50}) == ["9999"]


def test_an_argument_that_no_call_has_is_refused_where_others_were() -> None:
    asked = [row("open", {"door": f"D-{n}", "how": "key", "force": n}, "error: that did not work", True) for n in range(3)]
    named = [row("open", {"door": "D-1", "how": "key", "force": 1}, "error: unexpected argument 'force'", True)]
    def names(rows: list[dict[str, Any]]) -> KnownNames:
        return KnownNames([], {(each["tool"], each["arguments"]): [each] for each in [*ROWS, *rows]})
    assert names(asked).strangers("open", {"door": "D-3", "twice": 1}) == ["twice"]
    assert names(asked[:2]).strangers("open", {"door": "D-3", "twice": 1}) is None, "too few to say"
    assert names(named).strangers("open", {"door": "D-3", "twice": 1}) == ["twice"], "the answer says why"
    assert names([*named, row("ring", {}, "done")]).strangers("ring", {"twice": 1}) == ["twice"], "it takes no argument"
    assert names(asked).strangers("open", {"door": "D-3", "how": "key"}) == []
    assert names(asked).strangers("burn", {"door": "D-3"}) is None, "no call of the tool ever worked"


def test_what_another_tool_was_asked_for_alone_exists_though_no_answer_shows_it() -> None:
    rows = [each for n in range(30) for each in (
        row("badge", {"login": f"user.{n}"}, f"Team {n % 3}"), row("take", {"login": f"user.{n}", "pieces": n}, "done"))]
    names = KnownNames([], {(each["tool"], each["arguments"]): [each] for each in rows})
    assert names.strangers("take", {"login": "user.7", "pieces": 12}) == []
    assert names.strangers("take", {"login": "user.77", "pieces": 12}) == ["user.77"]


def known(rows: list[dict[str, Any]], documents: list[tuple[str | None, str]] | None = None) -> KnownNames:
    return KnownNames([], {(each["tool"], each["arguments"]): [each] for each in rows}, documents or [])


def test_numbers_in_groups_and_values_inside_of_objects_name() -> None:
    dishes = ("soup", "rice", "stew", "cake", "tea")
    rows = [row("menu", {}, " ".join(dishes)), *(each for n in range(20) for each in (
        row("guest", {"phone": f"+41 79 {n:02}"}, f"guest {n}"),
        row("order", {"phone": f"+41 79 {n:02}", "items": [{"dish": dishes[n % 5], "n": 1 + n % 3}]}, "ok")))]
    names = known(rows)
    assert names.strangers("order", {"phone": "+41 79 07", "items": [{"dish": "tea", "n": 2}]}) == []
    assert names.strangers("order", {"phone": "+41 79 079", "items": [{"dish": "tea", "n": 2}]}) == ["+41 79 079"]
    assert names.strangers("order", {"phone": "+41 79 07", "items": [{"dish": "pizza", "n": 2}]}) == ["pizza"]
    assert names.strangers("order", {"phone": "+41 79 07", "items": [{"dish": "tea", "n": 99}]}) is None


def test_an_argument_with_few_values_names_if_others_of_its_name_do() -> None:
    few = [row("lock", {"door": f"D-{n}", "by": "me"}, "done") for n in range(2)]
    assert known([*ROWS, *few]).strangers("lock", {"door": "D-77", "by": "me"}) == ["D-77"]
    made = [row("lock", {"door": "new-1", "by": "me"}, "done")]
    assert known([*ROWS, *made]).strangers("lock", {"door": "D-77", "by": "me"}) is None
    assert known(ROWS).strangers("never_called", {"door": "D-77"}) == ["D-77"]


def test_what_a_session_had_seen_names_and_what_it_made_does_not() -> None:
    def rows(tool: str) -> list[dict[str, Any]]:
        return [{**row(tool, {"team": "red", "who": f"user.{n}"}, "null"), "session": f"s{n}"} for n in range(20)]
    seen: list[tuple[str | None, str]] = [(f"s{n}", f"members: user.{n}") for n in range(20)]
    later: list[tuple[str | None, str]] = [(None, f"members: user.{n}") for n in range(20)]
    assert known(rows("remove"), seen).strangers("remove", {"team": "red", "who": "user.77"}) == ["user.77"]
    assert known(rows("invite"), later).strangers("invite", {"team": "red", "who": "user.77"}) is None


def test_a_new_value_that_looks_like_others_does_not_make_a_call_doubtful() -> None:
    rows = [each for n in range(20) for each in (
        row("policy", {"policy": f"P-{n}"}, f"policy {n}"),
        row("pay_to", {"policy": f"P-{n}", "account": f"DE{n:02} 0{n:02}"}, "ok"))]
    assert known(rows).strangers("pay_to", {"policy": "P-3", "account": "DE99 999"}) == []
    assert known(rows).strangers("pay_to", {"policy": "P-3", "account": "X9"}) is None


def state() -> EpisodeState:
    programs = {"doors": {"tool": "doors", "effect": "read", "relation": {}, "rules": [{"rule": "recorded"}]},
                "open": {"tool": "open", "effect": "write", "relation": {}, "rules": [{"rule": "recorded"}]}}
    return EpisodeState(World([], ROWS), programs, View(None, frozenset()))


def test_a_refused_call_leaves_the_world_as_it_was() -> None:
    episode = state()
    assert episode.call("open", {"door": "D-77"}).tier == "unknown" and not episode.write_calls
    assert episode.names_known("open", '{"door":"D-77"}') is False
    assert episode.call("open", {"door": "D-25"}).tier == "unknown" and len(episode.write_calls) == 1
    assert episode.names_known("open", '{"door":"D-25"}') is True
    assert episode.names_known("burn", "{}") is None


def test_a_call_that_is_on_record_with_a_number_as_text_is_answered_alike() -> None:
    programs = {"read": {"tool": "read", "effect": "write", "relation": {}, "rules": [{"rule": "recorded"}]}}
    asked = row("read", {"meter": "7120", "value": 12}, "ok")
    episode = EpisodeState(World([], [asked]), programs, View(None, frozenset()))
    assert episode.call("read", {"meter": 7120, "value": "12"}) == ("ok", False, "recorded")
    assert episode.difference()["write_calls"] == [["read", '{"meter":"7120","value":12}']]
    assert episode.call("read", {"meter": "07120", "value": 12}).tier == "unknown", "a name is no number"


@pytest.mark.parametrize(("effect", "rule"), [
    ("unknown", {"rule": "constant", "content": "done"}),
    ("write", {"rule": "text", "form": "plain", "pieces": ["done"], "numbers": ["as_given"], "when": None}),
])
def test_what_all_calls_answer_is_no_answer_to_one_that_names_nothing(effect: str, rule: dict[str, Any]) -> None:
    """Every call that worked was answered "done"; a door that nobody met was not opened for all that."""
    programs = {"open": {"tool": "open", "effect": effect, "relation": {}, "rules": [{"rule": "recorded"}, rule]}}
    episode = EpisodeState(World([], ROWS), programs, View(None, frozenset()))
    assert episode.call("open", {"door": "D-25", "how": "key"}).content == "done"
    assert episode.call("open", {"door": "D-77", "how": "key"}).tier == "unknown"
    assert episode.difference()["write_calls"] == [["open", '{"door":"D-25","how":"key"}']]


def test_what_an_answer_of_the_session_shows_is_known_to_exist_there() -> None:
    programs = {"doors": {"tool": "doors", "effect": "read", "relation": {}, "rules": [{"rule": "recorded"}]},
                "open": {"tool": "open", "effect": "unknown", "relation": {},
                         "rules": [{"rule": "constant", "content": "done"}]}}
    episode = EpisodeState(World([], ROWS), programs, View(None, frozenset()))
    episode.learn("doors", {"floor": 3}, "error: no such floor as D-77")
    episode.learn("doors", {"like": "D-77"}, '{"like": "D-77", "doors": []}')
    assert episode.call("open", {"door": "D-77", "how": "key"}).tier == "unknown", "refusals and repetitions show nothing"
    episode.learn("doors", {"floor": 4}, '["D-77"]')
    assert episode.call("open", {"door": "D-77", "how": "key"}).content == "done"
    assert episode.call("open", {"door": "D-78", "how": "key"}).tier == "unknown"
    assert episode.next_episode(View(None, frozenset()), True).call("open", {"door": "D-77", "how": "key"}).content == "done"


def test_what_the_real_tool_answered_twice_alike_it_answers_again() -> None:
    program = {"tool": "read", "effect": "unknown", "presumed": "read", "relation": {}, "repeats": False,
               "rules": [{"rule": "recorded"}]}
    episode = EpisodeState(World([], [row("read", {"sign": 7}, "closed")]), {"read": program}, View(None, frozenset()))
    for answer, tier in (("closed", "recorded"), ("closed", "unknown"), ("open", "recorded")):
        assert episode.call("read", {"sign": 7}).tier == tier
        episode.learn("read", {"sign": 7}, answer)
    assert episode.call("read", {"sign": 7}).tier == "unknown", "it has changed"


def judged(kind: str, parameters: dict[str, Any], attempt: dict[str, Any], difference: dict[str, Any]) -> CheckResult:
    """Judge an episode with one call that nobody knows the answer to, and that names what exists."""
    call = {"kind": "call", "tool": "open", "arguments": attempt, "is_error": True, "tier": "unknown", "content": "unknown"}
    check, ready = prepared(kind, parameters)
    return check.judge(ready, EpisodeView(Episode((call,), difference, (call,), frozenset({"open"}), None, (call,))))


@pytest.mark.parametrize("repeats", [True, False])
def test_what_was_learnt_of_a_possible_write_answers_no_second_call(repeats: bool) -> None:
    take = {"tool": "take", "effect": "unknown", "presumed": "read", "relation": {}, "repeats": repeats,
            "rules": [{"rule": "recorded"}]}
    room = EpisodeState(World([], []), {"take": take}, View(None, frozenset()))
    assert room.call("take", {"n": 2}).tier == "unknown"
    room.learn("take", {"n": 2}, "8 are left")
    assert room.call("take", {"n": 2}).tier == ("recorded" if repeats else "unknown")


def test_an_attempt_elsewhere_counts_as_done() -> None:
    nothing = {"documents": {}, "write_calls": []}
    end = {"documents": {}, "write_calls": [["open", '{"door":"D-1","note":"as asked"}']]}
    accepted = {"accepted": [end]}
    elsewhere = judged("untouched", accepted, {"door": "D-2"}, end)
    assert elsewhere.passed is False and not elsewhere.depends_on_unknown
    reworded = judged("untouched", accepted, {"door": "D-1", "note": "quite another reason"}, nothing)
    assert reworded.depends_on_unknown, "nobody knows which words are right"
    missing = judged("state", accepted, {"door": "D-2"}, nothing)
    assert missing.passed is False and not missing.depends_on_unknown, "the call that was needed was never made"
    idle = judged("must_not_write", {}, {"door": "D-2"}, nothing)
    assert idle.passed is False and not idle.depends_on_unknown
    named = {"accepted": [{"documents": {"door/D-2": "{}"}, "write_calls": []}]}
    assert judged("untouched", named, {"door": "D-2"}, nothing).depends_on_unknown, "it may be what was needed"
    made = {"accepted": [{"documents": {"visit/7": "{}"}, "write_calls": []}]}
    assert judged("untouched", made, {"door": "D-2", "note": "for the guest"}, nothing).depends_on_unknown, "it may make it"
    grouped = judged("untouched", made, {"door": "12 34"}, nothing)
    assert grouped.passed is False and not grouped.depends_on_unknown, "a number in groups is no free text"


@pytest.mark.parametrize(("content", "flagged", "fails"), [
    ("Traceback (most recent call last):\n  KeyError: 7", False, True),
    ("(False, 'no such door')", None, True),
    ("Sorry, that did not work: door D-7 not found", False, True), ("ERR not_found: door", None, True),
    ('{"status": 404, "detail": "door not found"}', False, True), ('{"ok": false}', None, True),
    ('{"ok": false}', False, False), ("HTTP/1.1 409 Conflict\n\nthe door is open", False, True),
    ("404 Not Found: no door D-7", False, True), ("404 doors are open", None, False),
    ("the lift timed out after 9 s", None, True),
    ("door D-7 not found", None, True), ("door D-7 not found", False, False), ("invalid code", None, True),
    ("The errors of last year are listed below.", None, False), ('{"status": "open"}', None, False),
    ('{"status": 404, "door": "D-404"}', None, False), ("done", True, True),
    ('{"errors": [{"status": "404", "detail": "no such door"}]}', None, True), ('{"errors": 3, "doors": 12}', None, False),
    ('{"data": {"door": "D-1"}, "error": null}', None, False), ('{"data": {"door": "D-1"}, "errors": []}', None, False),
    ('{"status": "error", "message": "no such door"}', None, True), ('{"status": "error", "door": "D-1"}', None, False),
    ('{"status": "fail"}', None, False), ('{"code": 404, "message": "no such door"}', None, True),
    ('{"code": 404, "title": "Doors"}', None, False),
    ("ValueError: the door is open", False, True), ('<error code="404">no door</error>', None, True),
    ('[{"error": "no such door"}]', None, True), ('["Error: no such door"]', None, True), ('["error", "warning"]', None, False),
    ('[{"door": "D-1"}]', None, False)])
def test_answers_that_say_so_are_failures(content: str, flagged: bool | None, fails: bool) -> None:
    assert failed(content, parse(content), flagged) is fails


def test_an_attempt_in_other_words_counts_as_the_accepted_call() -> None:
    nothing = {"documents": {}, "write_calls": []}
    end = {"documents": {}, "write_calls": [["open", '{"door":"D-1","note":"as asked"}']]}
    accepted = {"accepted": [end], "ignored_arguments": {"open": ["note"]}}
    reworded = {"door": "D-1", "note": "the guest asks for it"}
    reached = judged("state", accepted, reworded, nothing)
    assert reached.passed and not reached.depends_on_unknown, "the log has this call as done"
    untouched = judged("untouched", accepted, reworded, nothing)
    assert untouched.passed and not untouched.depends_on_unknown
    twice = judged("untouched", accepted, reworded, end)
    assert twice.passed is False and not twice.depends_on_unknown
    quoting = {"tool": "open", "arguments": {"door": "D-1"}, "where": {"note": {"contains": "asks"}}, "outcome": "any"}
    assert judged("call", {"calls": [quoting], "at_least": 1}, reworded, nothing).passed
    assert not judged("call", {"calls": [quoting], "at_least": 1}, {"door": "D-1", "note": "x"}, nothing).passed


LOOKED_UP = [*(row("see", {"door": f"D-{n}"}, "a door") for n in range(7)),
             *(row("pass", {"door": f"D-{n}", "word": f"w{n}", "count": 3 + n}, "done") for n in range(8))]


def test_a_value_that_stands_nowhere_is_doubtful_where_the_others_are_mostly_looked_up() -> None:
    names = KnownNames([], {(each["tool"], each["arguments"]): [each] for each in LOOKED_UP})
    assert names.strangers("pass", {"door": "D-77"}) is None, "one of eight doors was never looked up"
    assert names.doubtful("pass", {"door": "D-77", "word": "w99", "count": 99}) == ["D-77"]
    assert names.doubtful("pass", {"door": "D-7"}) == [] == names.doubtful("pass", {"door": "D-2"})


def test_a_value_that_others_show_but_nobody_looks_up_is_new_by_nature() -> None:
    rows = [row("list", {}, " ".join(f"m{n}@x.org" for n in range(6))),
            *(row("invite", {"mail": f"m{n}@x.org"}, "sent") for n in range(8))]
    names = KnownNames([], {(each["tool"], each["arguments"]): [each] for each in rows})
    assert names.doubtful("invite", {"mail": "m99@x.org"}) == []


def test_what_a_tool_confirms_is_not_given_to_a_doubtful_name() -> None:
    program = {"tool": "pass", "effect": "unknown", "class": None, "relation": {}, "takes": ["count", "door", "word"],
               "repeats": True, "rules": [{"rule": "recorded"}, {"rule": "constant", "content": "done"}]}
    state = EpisodeState(World([], LOOKED_UP), {"pass": program}, View(None, frozenset()))
    assert state.call("pass", {"door": "D-2", "word": "w2", "count": 5}).content == "done"
    assert state.call("pass", {"door": "D-77", "word": "w2", "count": 5}).tier == "unknown"


def test_values_that_differ_by_their_case_are_no_list_to_choose_from() -> None:
    def strangers(*marks: str) -> list[str] | None:
        answers = {("mark", f'{{"as":"{mark}","card":"C-{n}"}}'): [
            {"is_error": False, "content": "done", "session": None}] for n in range(9) for mark in marks}
        return KnownNames([f"C-{n}" for n in range(9)], answers).strangers("mark", {"as": "late", "card": "C-1"})
    assert strangers("bug", "draft") == ["late"] and strangers("bug", "Bug", "draft") is None


@pytest.mark.parametrize("rows", [ROWS, LOOKED_UP, NUMBERED, [*ROWS, *_again(12)]])
def test_what_is_stored_of_them_answers_as_they_do(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    documents = [(None, '{"note": "K-77 and K-78"}'), ("", '{"card": "C-1"}')]
    names = KnownNames(["C-1", "ä\u2028"], {(each["tool"], each["arguments"]): [each] for each in rows}, documents)
    (tmp_path / "names.jsonl").write_bytes(b"".join(line + b"\n" for line in names.lines))
    stored = StoredNames(json.loads(canonical(names.rules)), tmp_path / "names.jsonl")
    values = [*names._shown_by, *names._asked_alone, "ORD-10119", "C-1", "ä\u2028", "K-78", "zz", "", '"', "\U0001f600", "17",
              "3.5", "999"]
    calls = [(each["tool"], json.loads(each["arguments"])) for each in rows]
    calls += [(tool, {**arguments, name: value}) for tool, arguments in calls[::7] for name in arguments for value in values]
    calls += [(tool, {**arguments, "other": 1}) for tool, arguments in calls[:5]] + [("none", {"card": "C-1"})]
    for tool, arguments in calls:
        assert stored.strangers(tool, arguments) == names.strangers(tool, arguments)
        assert stored.doubtful(tool, arguments) == names.doubtful(tool, arguments)


def test_of_an_empty_log_nothing_is_stored(tmp_path: Path) -> None:
    (tmp_path / "names.jsonl").write_bytes(b"".join(KnownNames([], {}).lines))
    stored = StoredNames(KnownNames([], {}).rules, tmp_path / "names.jsonl")
    assert stored.strangers("look", {"at": "x"}) is None and stored.doubtful("look", {"at": "x"}) == []
