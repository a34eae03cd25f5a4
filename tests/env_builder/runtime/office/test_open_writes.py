"""What follows a write whose answer is unknown: what it may have changed is open, everything else as it was."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.company import (
    CompanyDesk,
    ProductRefusal,
    Undecided,
    UnwordedRefusal,
    open_what_may_follow,
)
from env_builder.runtime.office.company import CompanyEpisode, CompanySetup, CompanySuite, tools_of
from env_builder.runtime.office.tools import OfficeTool
from tests.small_company import ADA, BEN, CLEO, NEVER, NOON, desk_of, fields_of, mail_of, world_of

BOXES = [
    fields_of("box", "red", -50, size=1, lid="open", tags=["old"]),
    fields_of("box", "blue", -40, size=2, lid="shut", tags=[]),
    fields_of("box", "grey", -30, NEVER, size=3, lid="shut", tags=[]),
]
WORLD = world_of(*BOXES, fields_of("shelf", "s1", -20, name="upper"))


def paint(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Set a box's size; it is in doubt for large ones, in the product's words for none."""
    key, size = arguments["box"], arguments["size"]
    if not desk.exists("box", key):
        raise ProductRefusal("no such box")
    if size > 5:
        desk.doubt("whether large sizes are taken")
    if size == 4:
        raise UnwordedRefusal("nobody saw how it refuses this")
    if size > 8:
        raise ProductRefusal("never so large")
    desk.write("box", key, size=size, rest=desk.value("box", "grey", "size") if size == 5 else 0)
    if size == 3:
        raise Undecided("what comes after")
    desk.acted()
    if size == 2.5:
        raise Undecided("how it writes halves")
    return f"{desk.value('box', key, 'lid')} {size}"


def make(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    desk.doubt("whether boxes can be made")
    key = desk.made_id("box")
    desk.write("box", key, size=arguments["size"], lid="open", tags=["new"])
    return key


def remove_one(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    key = desk.one_of(list(desk.ids("box")), "which box is meant")
    if key is None:
        raise ProductRefusal("no box")
    desk.remove("box", key)
    return key


def sizes(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    return str({key: desk.value("box", key, "size") for key in desk.ids("box") if key != "grey"})


TOOLS = {"paint": OfficeTool(paint, ("box",)), "make": OfficeTool(make, ("box",)), "sizes": OfficeTool(sizes),
         "remove_one": OfficeTool(remove_one, ("box",))}


def episode(**more: Any) -> CompanyEpisode:
    suite = CompanySuite("boxes", CompanySetup(WORLD, products=(), **more))
    suite.tools = TOOLS
    suite.answers = frozenset(TOOLS)
    return CompanyEpisode(suite, desk_of(WORLD))


def is_open(own: CompanyEpisode, *field: str) -> bool:
    try:
        own.desk.value(*field)
    except Undecided:
        return True
    return False


def test_what_the_act_would_have_written_is_open_and_nothing_else() -> None:
    own = episode()
    before = own.snapshot()
    assert own.call("paint", {"box": "red", "size": 6}).tier == "unknown"
    assert is_open(own, "box", "red", "size") and not own.desk.is_known("box", "red", "size")
    assert own.desk.value("box", "red", "lid") == "open" and own.desk.value("box", "blue", "size") == 2
    assert own.call("sizes", {}).tier == "unknown"
    with pytest.raises(Undecided):
        own.desk.where("box", "size", 1)
    assert own.desk.where("box", "lid", "open") == ["red"]
    fork = own.fork()
    assert own.call("paint", {"box": "red", "size": 2}) == ("open 2", False, "derived")   # known again, written again
    assert own.call("sizes", {}).content == "{'red': 2, 'blue': 2}"
    assert is_open(fork, "box", "red", "size")
    fork.restore(before)
    assert fork.call("sizes", {}).content == "{'red': 1, 'blue': 2}"


def test_a_refusal_in_unknown_words_changes_nothing_and_neither_does_one_on_either_outcome() -> None:
    own = episode()
    for size in (4, 9):
        assert own.call("paint", {"box": "red", "size": size}).tier == "unknown"
        assert own.call("sizes", {}).content == "{'red': 1, 'blue': 2}"
    assert own.difference()["documents"] == {}


def test_where_only_the_answer_is_unknown_the_act_happened() -> None:
    own = episode()
    assert own.call("paint", {"box": "red", "size": 2.5}).tier == "unknown"
    assert own.call("sizes", {}).content == "{'red': 2.5, 'blue': 2}" and own.desk.now == NOON + 1


def test_where_the_act_cannot_go_on_every_record_of_its_classes_is_open_until_it_is_written() -> None:
    own = episode()
    assert own.call("paint", {"box": "red", "size": 3}).tier == "unknown"
    assert is_open(own, "box", "blue", "lid") and own.desk.value("shelf", "s1", "name") == "upper"
    with pytest.raises(Undecided):
        own.desk.exists("box", "yellow")
    with pytest.raises(Undecided):
        list(own.desk.ids("box"))
    own.desk.write("box", "blue", lid="open")
    assert own.desk.value("box", "blue", "lid") == "open" and own.desk.exists("box", "blue")
    assert is_open(own, "box", "blue", "size")


def test_a_value_that_is_not_known_leads_the_act_on_and_is_not_shown() -> None:
    own = episode()
    assert own.call("paint", {"box": "blue", "size": 5}).tier == "unknown"
    assert is_open(own, "box", "blue", "rest") and is_open(own, "box", "blue", "size")
    assert own.desk.value("box", "red", "size") == 1


def test_a_record_that_may_be_there_is_left_out_only_where_it_would_not_fit() -> None:
    own = episode()
    assert own.call("make", {"size": 7}).tier == "unknown"
    assert own.desk.where("box", "size", 2) == ["blue"] and own.desk.with_word("box", "lid", "shut") == ["blue", "grey"]
    for look in (lambda: own.desk.where("box", "size", 7), lambda: list(own.desk.ids("box")),
                 lambda: own.desk.with_word("box", "lid", "open"), lambda: own.desk.next_id("box")):
        with pytest.raises(Undecided):
            look()
    assert own.call("make", {"size": 7}).tier == "unknown" and len(own.desk.changed()) == 0


def test_an_act_on_one_of_several_records_opens_each_of_them() -> None:
    own = episode()
    assert own.call("remove_one", {}).tier == "unknown"
    for key in ("red", "blue", "grey"):
        with pytest.raises(Undecided):
            own.desk.exists("box", key)
    assert own.desk.exists("box", "yellow") is False


@given(st.lists(st.tuples(st.sampled_from(["red", "blue", "grey"]), st.sampled_from([1, 2, 3, 5, 6, 7, 9])), max_size=6))
def test_whatever_is_still_known_is_so_whether_the_unknown_acts_happened_or_not(acts: list[tuple[str, int]]) -> None:
    """Both outcomes are played on desks without doubts; what the desk of the episode says must hold on both."""
    own, refused, done = episode(), desk_of(WORLD), desk_of(WORLD)
    for box, size in acts:
        is_sure = size in (1, 2, 5)
        assert own.call("paint", {"box": box, "size": size}).tier == "unknown" or is_sure
        for desk in (refused, done) if is_sure else (done,) if size != 9 else ():
            desk.write("box", box, size=size, rest=desk.last_known("box", "grey", "size") if size == 5 else 0)
    for box in ("red", "blue"):
        for field in ("size", "lid", "tags", "rest"):
            if not is_open(own, "box", box, field):
                assert own.desk.value("box", box, field) == refused.value("box", box, field) == done.value("box", box, field)


def test_a_mail_whose_id_is_not_known_may_have_any_label_that_a_call_gave() -> None:
    world = world_of(mail_of("<m1@x>", -60, BEN, [ADA], "Rye", "rye is due"), mail_of("<m2@x>", -50, CLEO, [ADA], "Oats"))
    suite = CompanySuite("mill", CompanySetup(world, products=("gmail",)))
    own = CompanyEpisode(suite, desk_of(world, conventions={"gmail": {"known_ids": {"aa": "<m1@x>"}}}))
    look = {"query": "label:Later"}
    assert own.call("search_gmail_messages", look).content == "No messages found for 'label:Later'."
    assert own.call("modify_gmail_message_labels", {"message_id": "bb", "add_label_ids": ["Later"]}).tier == "unknown"
    assert own.call("search_gmail_messages", look).tier == "unknown"
    assert "rye is due" in own.call("get_gmail_message_content", {"message_id": "aa"}).content
    assert own.call("search_gmail_messages", {"query": "label:Later subject:rye"}).content.startswith("No messages found")


@pytest.mark.parametrize("product", ["calendar_events", "confluence", "drive", "github", "gmail", "jira", "slack"])
def test_tools_say_the_classes_of_what_they_write(product: str) -> None:
    classes = {name for tool in tools_of([product]).values() for name in tool.writes}
    assert classes and all(isinstance(name, str) for name in classes)


def test_opening_needs_no_more_than_the_act_itself() -> None:
    desk = desk_of(WORLD)
    open_what_may_follow(desk, lambda supposed: paint(supposed, {"box": "red", "size": 6}), frozenset(["box"]))
    assert desk.record("box", "red") == {"lid": "open", "tags": ["old"]} and desk.now == NOON
