"""The world of a company at an instant."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.company import PRESENT, CompanyWorld, FieldVersion, PersonSight

_VERSIONS = st.lists(st.builds(
    FieldVersion, st.sampled_from("ab"), st.sampled_from("xy"), st.sampled_from("fg"), st.integers(0, 5), st.integers(0, 20),
    guessed_until=st.sampled_from((0, 0, 12, 30))), max_size=30)


@given(_VERSIONS, st.integers(0, 25))
def test_later_versions_change_nothing_of_a_state(versions: list[FieldVersion], instant: int) -> None:
    visible = [version for version in versions if version.at <= instant]
    assert list(CompanyWorld(versions).at(instant).fields()) == list(CompanyWorld(visible).at(instant).fields())


@given(_VERSIONS, st.integers(0, 25))
def test_a_guess_is_never_shown(versions: list[FieldVersion], instant: int) -> None:
    state = CompanyWorld(versions).at(instant)
    for field in state.fields():
        own = [version for version in versions if version[:3] == field[:3] and version.at <= instant]
        last = max(enumerate(own), key=lambda each: (each[1].at, each[0]))[1]
        assert field.is_known == (last.guessed_until <= instant)
        assert field.value == (last.value if field.is_known else None)
        assert state.guess(*field[:3]) == last.value


def test_a_deleted_record_is_gone_until_it_is_made_again() -> None:
    world = CompanyWorld([FieldVersion("a", "x", "f", 1, 1), FieldVersion("a", "x", PRESENT, False, 3),
                          FieldVersion("a", "x", PRESENT, True, 5)])
    assert [world.at(instant).values("a", "x") for instant in (0, 1, 3, 5)] == [{}, {"f": 1}, {}, {"f": 1}]


def test_people_see_their_own_mail_channels_and_departments_files() -> None:
    world = CompanyWorld([
        FieldVersion("person", "ada@e.org", "dept", "Tools", 0), FieldVersion("slack_user", "U1", "email", "ADA@e.org", 0),
        FieldVersion("slack_channel", "C1", "private", True, 0), FieldVersion("slack_channel", "C1", "members", ["U1"], 5),
        FieldVersion("slack", "C1/1", "text", "x", 1), FieldVersion("mail", "<1>", "body", "x", 1),
        FieldVersion("mailbox", "bob@e.org|<1>", "labels", [], 1), FieldVersion("sheet", "f", "readers", ["tools"], 0),
        FieldVersion("sheet", "g", "readers", ["Sales"], 0)])
    early, later = (PersonSight(world.at(instant), "ada@e.org") for instant in (2, 6))
    assert (early.sees("slack", "C1/1"), later.sees("slack", "C1/1")) == (False, True)
    assert not later.sees("mail", "<1>") and not later.sees("mailbox", "bob@e.org|<1>")
    assert later.sees("sheet", "f") and not later.sees("sheet", "g")
    assert PersonSight(world.at(2), "bob@e.org").sees("mail", "<1>")
