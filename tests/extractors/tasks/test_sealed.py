"""What is sealed stays: ids, sides and components of tasks, whatever arrives later, and however it is grouped then."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extractors.tasks import MinedGoals, Tasks, find, leakage, mine_goals
from extractors.tasks.sealed import LEDGER, TIED
from tests.extractors.tasks.test_tasks import EFFECTS, chances, frames

Steps = list[tuple[Any, ...]]


def sell(number: int, also: tuple[int, ...] = ()) -> Steps:
    """Somebody has things sold, each named by its number."""
    things = " and ".join(f"lamp{1000 + n}" for n in (number, *also))
    return [("user", f"would you sell {things} for me"),
            *(("sell", {"what": f"lamp{1000 + n}"}, "ok") for n in (number, *also)), ("assistant", "ok")]


class Desk:
    """A service whose sessions arrive in epochs."""

    def __init__(self, start: str = "shared") -> None:
        self.steps: dict[str, Steps] = {}
        self.users: dict[str, str] = {}
        self.ledger = pl.DataFrame(schema=LEDGER)
        self.start = start

    def arrive(self, steps: dict[str, Steps], users: dict[str, str] | None = None) -> Tasks:
        """One more epoch."""
        self.steps |= steps
        self.users |= users or {}
        epoch = (self.ledger["epoch"].max() or 0) + 1
        new = pl.DataFrame({"session_id": list(steps)}, schema={"session_id": pl.String()})
        self.ledger = pl.concat([self.ledger, new.with_columns(pl.lit(epoch, pl.Int64()).alias("epoch"))], how="diagonal")
        made = self.find()
        self.ledger = self.ledger.select("session_id", "epoch", "word_group").join(made.sides, on="session_id", how="left")
        return made

    def find(self) -> Tasks:
        """Find the tasks of all that arrived, with the ledger as it is."""
        sessions, turns = self.logs
        return find(sessions, turns, chances(sessions), EFFECTS, {"shop": self.start}, ledger=self.ledger)

    def report(self, made: Tasks) -> dict[str, Any]:
        sessions, turns = self.logs
        return leakage(made.tasks, sessions, turns, EFFECTS, self.ledger, made.sides)["shop"]

    @property
    def logs(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        sessions, turns = frames(*self.steps.items(), identities=self.users)
        return sessions, turns


def sides(made: Tasks) -> dict[str, str]:
    return {session: row["split"] for row in made.tasks.to_dicts() for session in row["session_ids"]}


def names(made: Tasks) -> dict[str, str]:
    return {session: row["task_id"] for row in made.tasks.to_dicts() for session in row["session_ids"]}


def test_later_sessions_move_no_side_and_fill_the_shares_with_the_latest() -> None:
    desk = Desk()
    before = sides(desk.arrive({f"s{n:02}": sell(n) for n in range(20)}))
    after = sides(desk.arrive({f"t{n:02}": sell(20 + n) for n in range(10)}))
    assert {name: after[name] for name in before} == before
    assert [name for name, side in sorted(after.items()) if side == "held_out"] == ["s16", "s17", "s18", "s19", "t08", "t09"]
    alone = Desk()
    assert sides(alone.arrive(desk.steps))["s19"] == "train", "without a ledger yesterday's held-out tasks are trained on"


def test_a_new_task_takes_the_side_of_what_it_is_tied_to() -> None:
    desk = Desk()
    first = sides(desk.arrive({f"s{n:02}": sell(n) for n in range(20)}, {f"s{n:02}": f"user{n}" for n in range(20)}))
    assert (first["s02"], first["s19"]) == ("train", "held_out")
    made = desk.arrive({"a": sell(30), "b": sell(31), "c": sell(19)}, {"a": "user2", "b": "user19", "c": "another"})
    after = sides(made)
    assert (after["a"], after["b"], after["c"]) == ("train", "held_out", "held_out")
    of = dict(made.sides.select("session_id", "component").iter_rows())
    assert of["a"] == of["s02"] == "s02" and of["b"] == of["c"] == of["s19"]


def test_what_is_tied_to_two_sides_is_on_none_and_moves_nothing() -> None:
    desk = Desk()
    before = sides(desk.arrive({f"s{n:02}": sell(n) for n in range(20)}, {f"s{n:02}": f"user{n}" for n in range(20)}))
    made = desk.arrive({"both": sell(2, (19,)), "next": sell(40)}, {"both": "new", "next": "new"})
    after = sides(made)
    assert {name: after[name] for name in before} == before and "both" not in after and "next" not in after
    left = made.decisions.filter(pl.col("reason") == TIED).select("subject", "kept").rows()
    assert left == [("both", False), ("next", False)], "one user's tasks are one component"
    assert desk.report(made)["leaks"] == 0
    later = sides(desk.arrive({"third": sell(41)}, {"third": "new"}))
    assert "third" in later and later["third"] in {"train", "validation", "held_out"}, "what is on no side ties nothing"


def test_a_third_owner_unties_nothing() -> None:
    desk = Desk()
    users = {f"s{n:02}": f"user{n}" for n in range(20)}
    first = desk.arrive({f"s{n:02}": sell(n) for n in range(18)} | {"s18": sell(0), "s19": sell(19)}, users)
    tied = dict(first.sides.select("session_id", "component").iter_rows())
    assert tied["s00"] == tied["s18"]
    otherwise: Steps = [("user", "my aunt would rather keep lamp1000 in the hall"), *sell(0)[1:]]
    later = desk.arrive({"third": otherwise}, {"third": "somebody"})
    now = dict(later.sides.select("session_id", "component").iter_rows())
    assert (now["s00"], now["s18"]) == (tied["s00"], tied["s18"]) and sides(later)["s00"] == sides(later)["s18"]
    assert now["third"] == "third", "what three name ties nobody new"


def test_a_session_more_leaves_the_name_of_its_task() -> None:
    desk = Desk("reset")
    first = names(desk.arrive({f"s{n}": sell(n) for n in range(8)} | {"s9": sell(3)}))
    assert first["s3"] == first["s9"]
    after = names(desk.arrive({"a": sell(3), "b": sell(20)}))   # "a" is before all of them by its name
    assert {name: after[name] for name in first} == first and after["a"] == first["s3"] and after["b"] not in first.values()


KINDS = (("repaint the garden gate", "which colour shall the gate have"),
         ("cancel my piano lesson", "the teacher is ill again"),
         ("order fresh winter tyres", "they must fit a small van"))


def spoken(begin: int, end: int, kinds: tuple[tuple[str, str], ...] = KINDS) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Talks in which nothing is called."""
    def talk(n: int) -> Steps:
        first, then = kinds[n % len(kinds)]
        return [("user", f"good day, could you please {first} before number {n % 7}"), ("assistant", "certainly, tell me more"),
                ("user", f"well, {then} and {first} again"), ("assistant", "it will be done")]

    sessions, turns = frames(*((f"s{999 - n:03}", talk(n)) for n in range(begin, end)))   # later ones come first by their names
    return sessions, turns


def mined(n: int, before: MinedGoals | None = None) -> MinedGoals:
    """Find the goals of the first `n` talks; those that were mined before are sealed."""
    groups = before.groups if before else None
    ledger = None if groups is None else pl.concat(
        [pl.DataFrame(schema=LEDGER), groups.with_columns(pl.lit(1, pl.Int64()).alias("epoch"))], how="diagonal")
    return mine_goals(*spoken(0, n), EFFECTS, ledger=ledger)


def kinds_of(made: MinedGoals) -> dict[str, str]:
    return dict(made.goals.unique("session_id", keep="first", maintain_order=True).select("session_id", "asks").iter_rows())


def test_a_kind_that_words_tell_keeps_its_name_and_its_sessions() -> None:
    first = mined(60)
    named = kinds_of(first)
    assert len(set(named.values())) >= 3 and all(name.startswith("words of s") for name in named.values())
    more = mined(72, first)
    assert named.items() <= kinds_of(more).items() and set(kinds_of(more).values()) == set(named.values())
    assert more.groups.equals(first.groups), "what came after teaches nothing yet"
    assert set(kinds_of(mined(72)).values()).isdisjoint(named.values()), "without a ledger each is named after another"
    grown = mined(120, first)
    assert grown.groups.height == 120, "half as many more are clustered with the others"
    assert set(named.values()) <= set(kinds_of(grown).values())
    assert mined(120, grown).goals.equals(grown.goals), "the ledger that is left gives the same"


LOGS = st.lists(
    st.tuples(st.integers(0, 12), st.lists(st.integers(0, 12), max_size=2), st.sampled_from([None, "ann", "bob", "cy"]),
              st.integers(1, 3)), min_size=4, max_size=16)


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(LOGS, st.sampled_from(["shared", "reset"]))
def test_nothing_that_is_sealed_moves_and_the_ledger_gives_the_same_at_once(rows: list[Any], start: str) -> None:
    desk, placed, named = Desk(start), {}, {}
    for epoch in (1, 2, 3):
        arrived = {f"{(7 * n) % 16:02}": (sell(number, tuple(also)), who)
                   for n, (number, also, who, when) in enumerate(rows) if when == epoch}
        made = desk.arrive({name: steps for name, (steps, _) in arrived.items()},
                           {name: who for name, (_, who) in arrived.items() if who})
        of = dict(made.sides.select("session_id", "split").iter_rows())
        assert placed.items() <= of.items() and named.items() <= names(made).items()
        assert {name for name, side in of.items() if side != TIED} == sides(made).keys()
        placed, named = of, names(made)
        again = desk.find()
        assert again.tasks.equals(made.tasks) and again.sides.equals(made.sides) and again.decisions.equals(made.decisions)
