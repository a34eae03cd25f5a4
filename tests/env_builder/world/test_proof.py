"""Only proof makes a read; a service begins as its first answers over time say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from env_builder.runtime.canonical import canonical
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.world import View, World
from env_builder.world import begin, documents, effects, replay
from env_builder.world.calls import LoggedCall
from env_builder.world.effects import Declared, Effects, tells_of_a_change
from tests.env_builder.world.calls import call

BEGIN = datetime(2026, 3, 2, tzinfo=UTC)


def found(calls: list[LoggedCall], **declared: Declared) -> Effects:
    return effects.find(calls, documents.find(calls), shared=False, declared=declared)


def asked(tool: str, n_repeats: int = 0) -> list[LoggedCall]:
    """Ask six times, each session of another account, the first sessions twice."""
    return [call(tool, {"account": f"A-{n}"}, canonical({"total": 10 + n, "owner": f"person {n}"}), f"s{n}", position)
            for n in range(6) for position in range(2 if n < n_repeats else 1)]


def test_a_tool_without_repeats_is_only_presumed_to_read() -> None:
    assert found(asked("total_of")).presumed == {"total_of"}
    assert found(asked("total_of", n_repeats=2)).presumed == frozenset()


def test_a_read_only_annotation_is_proof() -> None:
    assert found(asked("total_of"), total_of=Declared("read")).presumed == frozenset()


@pytest.mark.parametrize(("tool", "description"), [
    ("refund_account", ""), ("total_of", "Cancels what is open and returns the total."), ("total_of", "Each look is audited.")])
def test_words_of_a_change_veto_the_proof(tool: str, description: str) -> None:
    calls = asked(tool, n_repeats=6)
    assert found(calls, **{tool: Declared(None, description)}).presumed == {tool}


def looked_up(tool: str, n_times: int) -> list[LoggedCall]:
    """Look up six accounts, each of them in so many sessions."""
    return [call(tool, {"account": f"A-{n}"}, canonical({"total": 10 + n, "owner": f"person {n}"}), f"s{n}-{time}")
            for n in range(6) for time in range(n_times)]


def found_in_one_world(calls: list[LoggedCall]) -> Effects:
    timed = [each._replace(called_at=BEGIN + timedelta(minutes=n)) for n, each in enumerate(calls)]
    return effects.find(timed, documents.find(timed), shared=True, declared={})


def test_telling_the_same_of_one_name_again_and_again_does_no_harm_whatever_the_name_says() -> None:
    assert found_in_one_world(looked_up("update_view", 3)).harmless == {"update_view"}
    assert found_in_one_world(looked_up("update_view", 1)).harmless == frozenset()
    two_names = [each._replace(arguments={**each.arguments, "as": "text"}) for each in looked_up("update_view", 3)]
    assert found_in_one_world(two_names).harmless == frozenset()


def test_a_tool_that_tells_something_and_of_which_nothing_speaks_is_unclear() -> None:
    def listed(tool: str, n_times: int = 1) -> Effects:
        return found([call(tool, {"pet": f"P{n}"}, canonical([{"stay": f"ST-{n}{place}", "open": "yes"} for place in (1, 2)]),
                           f"s{n}", at) for n in range(4) for at in range(n_times)])

    unclear = listed("stays.of_pet")
    assert (unclear.effect, unclear.unclear) == ({"stays.of_pet": "unknown"}, {"stays.of_pet"})
    assert not listed("cancel_stays").unclear, "its name says what it does"
    assert not listed("stays.of_pet", 3).unclear, "it tells the same again"


def test_a_tool_without_arguments_that_only_confirms_is_no_read() -> None:
    confirms = [call("take_back", {}, "Noted.", f"s{n}") for n in range(8)]
    assert found(confirms).effect["take_back"] == "unknown"
    tells = [call("saw", {}, "It is here." if n else "It is out.", f"s{n}", position) for n in range(8) for position in (0, 1)]
    assert found(tells).effect["saw"] == "read"


def test_what_only_acknowledges_may_have_changed_what_nobody_reads() -> None:
    calls = [each for n in range(6) for each in (
        call("get_room", {"room": f"R-{n}"}, canonical({"beds": n, "door": f"D-{n}"}), f"s{n}", 0),
        call("press", {"room": f"R-{n}"}, "ok", f"s{n}", 1),
        call("get_room", {"room": f"R-{n}"}, canonical({"beds": n, "door": f"D-{n}"}), f"s{n}", 2))]
    assert found(calls).effect == {"get_room": "read", "press": "unknown"}


def test_in_one_world_a_tool_is_blamed_for_what_only_changes_after_it() -> None:
    owners = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn")
    calls = [each for n, owner in enumerate(owners) for each in (
        call("get_state", {"claim": f"C-{n}"}, f"{owner}'s claim is approved.", f"a{n}"),
        call("get_state", {"claim": f"C-{n}"}, f"{owner}'s claim is approved.", f"b{n}"),
        call("get_money", {"claim": f"C-{n}"}, f"{owner} gets {250 + 7 * n}.", f"c{n}"),
        call("get_state", {"claim": f"C-{n}"}, f"{owner}'s claim is paid.", f"d{n}"))]
    assert found_in_one_world(calls).effect["get_money"] == "write"
    assert found_in_one_world(calls).effect["get_state"] == "read"
    assert found_in_one_world(calls[:8]).effect["get_money"] != "write", "two pairs are too few"


@pytest.mark.parametrize(("name", "description", "changes"), [
    ("cancelBooking", "", True), ("get_update_history", "", False), ("order_status", "", False), ("order_pizza", "", True),
    ("patient_record", "Shows a record.", False),
    ("lookup", "Deletes expired entries too.", True), ("sweep", "Removes old files.", True),
    ("peek", "Every peek is logged.", True), ("refunds", "", True),
    ("mail__search_letters", "", False), ("mail__send_letter", "", True), ("can_send_letters", "", False),
    ("withdraw_funds", "", True), ("check_in_guest", "", True), ("check_balance", "", False), ("ship_status", "", False),
    ("delete.letter", "", True), ("DELETE /letters/{id}", "", True), ("letters.search", "", False)])
def test_reads_english_names_and_descriptions(name: str, description: str, changes: bool) -> None:
    assert tells_of_a_change(name, description) is changes


def test_a_tool_without_arguments_that_always_answers_alike_may_as_well_confirm() -> None:
    def pressed(*answers: str) -> list[LoggedCall]:
        return [call("press", {}, answer, f"s{n}", position) for n, answer in enumerate(answers) for position in range(2)]
    assert found(pressed("ready", "ready", "ready", "ready")).effect == {"press": "unknown"}
    assert found(pressed("ready", "ready", "busy", "on fire")).effect == {"press": "read"}


def test_answers_that_a_write_changed_do_not_count_against_a_read() -> None:
    def session(n: int) -> list[LoggedCall]:
        answers = [("gauge", f"level {n}0"), ("gauge", f"level {n}0"), ("pump", "ok"), ("gauge", f"level {n}1"), ("pump", "ok"),
                   ("gauge", f"level {n}2")]
        return [call(tool, {"tank": f"T-{n}"}, content, f"s{n}", place) for place, (tool, content) in enumerate(answers)]
    effects_found = found([each for n in range(12) for each in session(n)])
    assert effects_found.effect == {"gauge": "read", "pump": "write"} and effects_found.presumed == frozenset()


def test_a_presumed_read_answers_like_a_read_and_counts_as_a_write() -> None:
    calls = asked("total_of")
    shown = documents.find(calls)
    programs = replay.skeletons(calls, shown, found(calls), shared=False)
    programs["total_of"]["rules"] = [{"rule": "recorded"}]
    answer = {"tool": "total_of", "arguments": canonical({"account": "A-1"}), "content": "11", "is_error": False, "from": None,
              "to": None, "session": None, "after": [], "effects": []}
    state = EpisodeState(World([], [answer]), programs, View(None, frozenset()))
    before = state.snapshot()
    assert state.call("total_of", {"account": "A-1"}).content == "11"
    assert state.difference() == {"documents": {}, "write_calls": [["total_of", '{"account":"A-1"}']]}
    assert state.may_write("total_of") and not state.is_simulated_write("total_of")
    state.restore(before)
    assert state.difference()["write_calls"] == []


def first_answers(*texts: str) -> list[LoggedCall]:
    """Ask one question in one session after another."""
    return [call("stock", {"of": "paint"}, text, f"s{n:02}")._replace(called_at=BEGIN + timedelta(hours=n))
            for n, text in enumerate(texts)]


def test_answers_that_return_speak_for_a_new_start() -> None:
    assert begin.changes_last(first_answers(*["3", "2", "1"] * 8)) is False
    assert begin.changes_last(first_answers(*["3"] * 8, *["2"] * 8, *["1"] * 8)) is True
    assert begin.changes_last(first_answers("3", "2", "3")) is None
    some_return = [*["3"] * 3, *["2"] * 3] * 4
    assert begin.changes_last(first_answers(*some_return)) is None, "changes that are undone bring answers back too"
    assert begin.changes_last(first_answers(*[*["3"] * 6, *["2"] * 6] * 4)) is True, "these are far fewer than by chance"


def test_changes_that_nobody_sees_later_speak_for_a_new_start() -> None:
    calls = [step for n in range(4) for step in (
        call("stock", {"of": "paint"}, "3", f"s{n}"), call("stock", {"of": "paint"}, "2", f"s{n}", 1))]
    assert begin.changes_last(calls) is False
    assert begin.changes_last(calls[:4]) is None


def test_sessions_whose_first_answers_never_differ_begin_alike() -> None:
    assert begin.changes_last(first_answers(*["3"] * 60)) is False
    assert begin.changes_last(first_answers(*["3"] * 40)) is None
    assert begin.changes_last(first_answers(*["3"] * 60, "2")) is None


def begun_apart(n_sessions: int) -> list[LoggedCall]:
    """Each session begins with a wall of its own colour; all look for the account first, and at the wall last."""
    colours = ("red", "green", "blue", "grey")
    return [each for n in range(n_sessions) for each in (
        call("wall", {}, canonical({"colour": colours[n % 4], "hut": "H-1"}), f"s{n}", 0),
        call("find_account", {"name": "Ada"}, canonical({"account": "A-1", "colour": colours[n % 4]}), f"s{n}", 1),
        call("gate", {}, canonical({"gate": "G-1", "state": colours[n % 4]}), f"s{n}", 2))]


def test_first_looks_prove_no_change_where_sessions_begin_from_states_of_their_own() -> None:
    calls = [*begun_apart(24), call("gate", {}, canonical({"gate": "G-1", "state": "open"}), "t", 0)]
    assert "write" not in {found(calls).effect["find_account"], found(calls).effect["wall"]}


def door_looked_at(n_sessions: int) -> list[LoggedCall]:
    """In each session the door's state is asked for twice, changed by a hand that no log shows, and asked for twice again."""
    shown = ("shut", "shut", "open", "locked", "ajar")
    return [call("door_state", {}, f"The door of hall {n} is {state} and has a handle.", f"s{n}", place)
            for n in range(n_sessions) for place, state in enumerate(shown)]


def test_three_equal_answers_prove_a_read_though_most_answers_differ() -> None:
    does = found(door_looked_at(3))
    assert does.effect["door_state"] == "read" and "door_state" not in does.presumed
    assert "door_state" in found(door_looked_at(2)).presumed
    described = found(door_looked_at(3), door_state=Declared(None, "Opens the door and tells its state."))
    assert described.effect["door_state"] != "read" or "door_state" in described.presumed
    hinted = found(door_looked_at(3), door_state=Declared("unknown"))
    assert hinted.effect["door_state"] != "read" or "door_state" in hinted.presumed


def test_what_a_write_call_confirms_in_every_session_does_not_speak_for_one_world() -> None:
    """Sessions begin anew: each orders something, under the number that in others an order has from the beginning."""
    calls = []
    for n in range(9):
        made = call("place", {"what": f"chair {n}", "size": n}, canonical({"order": "O-7", "state": "pending"}), f"s{n}", 0)
        cancelled = call("cancel", {"order": "O-7"}, canonical({"order": "O-7", "state": "cancelled"}), f"s{n}", 1)
        calls += [made, cancelled] if n % 2 else [cancelled]
    beginning = begin.find(calls, documents.find(calls))
    assert beginning.votes == {"reset": 0, "shared": 0}
    assert beginning.starts_from == "reset"


def test_a_changed_record_that_the_next_session_looks_at_speaks_for_one_world() -> None:
    def shown(state: str) -> str:
        return canonical({"order": "O-7", "state": state})

    calls = [call("get", {"order": "O-7"}, shown("open"), "s0", 0), call("cancel", {"order": "O-7"}, shown("void"), "s0", 1),
             call("get", {"order": "O-7"}, shown("void"), "s1", 0)]
    assert begin.find(calls, documents.find(calls)).votes == {"reset": 0, "shared": 1}


def test_tools_whose_fields_hold_values_of_another_shape_show_different_records() -> None:
    calls = [call("list_add", {"item": f"I{n}"}, canonical({"item": [f"I{each}" for each in range(n + 1)]}), f"s{n}")
             for n in range(5)]
    calls += [call("item_named", {"name": f"pen {n}"}, canonical({"item": f"I{n}"}), f"s{n}", 1) for n in range(5)]
    shown = documents.find(calls).tools
    assert shown["list_add"].entity_class != shown["item_named"].entity_class


def test_tools_that_share_one_field_show_one_class_only_if_the_same_names_are_looked_up() -> None:
    calls = [call("gate_state", {"gate": f"G{n}"}, canonical({"state": f"open by {n}"}), f"s{n}") for n in range(5)]
    calls += [call("lamp_state", {"lamp": f"L{n}"}, canonical({"state": f"lit by {n}"}), f"s{n}", 1) for n in range(5)]
    calls += [call("gate_now", {"name": f"G{n}"}, canonical({"state": f"open by {n}"}), f"s{n}", 2) for n in range(5)]
    shown = documents.find(calls).tools
    assert shown["gate_now"].entity_class == shown["gate_state"].entity_class != shown["lamp_state"].entity_class


def test_a_tool_of_which_a_statement_changes_something_is_not_presumed_to_read() -> None:
    rows = [call("run", {"sql": f"SELECT * FROM doors WHERE door = {n}"}, f"name {n} | hall{n} | open{n}", f"s{n}", place)
            for n in range(6) for place in range(2)]
    written = call("run", {"sql": "UPDATE doors SET state = 'shut' WHERE door = 3"}, "UPDATE 1", "s3", 2)
    assert found(rows).effect["run"] == "read"
    changing = found([*rows, written])
    assert changing.effect["run"] == "unknown" and "run" not in changing.presumed
