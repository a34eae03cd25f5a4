"""Groups of sessions by their words: how many there are, and what is only a combination of others."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from benchmarks import first_hour_words_corpus as corpus
from benchmarks.first_hour_words import WordSet, families_of, requests
from benchmarks.mining_scores import ari
from extractors.tasks import find
from extractors.tasks.mixtures import merge_by_words, merge_groups
from tests.extractors.tasks.test_goals import NONE, WORDS, begins, talk
from tests.extractors.tasks.test_tasks import chances, frames


def mixture(n_groups: int, n_each: int, n_words: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Return sessions x words, and the group of each; every group prefers some words, and all share the others."""
    chance = np.random.default_rng(4)
    kinds = np.repeat(np.arange(n_groups), n_each)
    rates = np.full((n_groups, n_words), 0.03)
    for kind in range(n_groups):
        rates[kind, kind * 5:kind * 5 + 5] = 0.8
    return chance.random((len(kinds), n_words)) < rates[kinds], kinds


@pytest.mark.parametrize(("n_groups", "n_each"), [(2, 60), (4, 25), (8, 30)])
def test_pieces_of_groups_are_merged_until_the_number_of_groups_is_right(n_groups: int, n_each: int) -> None:
    present, kinds = mixture(n_groups, n_each)
    pieces = kinds * 5 + np.arange(len(kinds)) % 5
    merged = merge_groups(present, pieces)
    assert len(set(merged.tolist())) == n_groups
    assert ari(kinds.tolist(), merged.tolist()) > 0.9


def test_sessions_that_use_words_alike_are_one_group_and_no_words_change_nothing() -> None:
    present, _ = mixture(1, 80)
    assert set(merge_groups(present, np.arange(80) % 6).tolist()) == {0}
    assert merge_groups(np.zeros((4, 3), dtype=bool), np.array([7, 7, 2, 2])).tolist() == [0, 0, 1, 1]


def test_words_that_tell_kinds_apart_part_groups_of_few_sessions_and_common_words_do_not() -> None:
    chance = np.random.default_rng(5)
    kinds = np.repeat(np.arange(20), 4)
    telling = np.kron(np.eye(20, dtype=bool), np.ones((4, 2), dtype=bool)) & (chance.random((80, 40)) < 0.9)
    present = np.hstack([telling, chance.random((80, 30)) < 0.5])   # beside them, words that all use as often as not
    pieces = kinds * 2 + np.arange(80) % 2
    fine, coarse = merge_by_words(present, pieces), merge_groups(present, pieces)
    assert ari(kinds.tolist(), fine.tolist()) > 0.9 > ari(kinds.tolist(), coarse.tolist())


def test_groups_that_use_every_word_alike_are_one_by_words_too() -> None:
    present = np.tile(np.random.default_rng(6).random((10, 30)) < 0.4, (6, 1))
    assert set(merge_by_words(present, np.repeat(np.arange(6), 10)).tolist()) == {0}
    assert set(merge_by_words(np.zeros((4, 3), dtype=bool), np.array([7, 7, 2, 2])).tolist()) == {0}


def test_few_sessions_of_each_kind_fall_into_their_kinds() -> None:
    words = requests(corpus.BANK, 240, 13)
    families = families_of(words)
    ids = sorted(words.kinds)
    assert ari([words.kinds[each] for each in ids], [families[each] for each in ids]) > 0.33, "k-means told the number: .33"


def test_two_goals_that_often_come_together_are_no_kind_of_their_own() -> None:
    alone = [(f"{goal}{i:02}", talk(goal, calls=False)) for goal in WORDS for i in range(12)]
    both = [(f"both{i:02}", talk("fly", "cook", calls=False)) for i in range(6)]
    sessions, turns = frames(*alone, *both)
    goals = find(sessions, turns, chances(sessions), NONE, {}).goals
    kinds = dict(goals.filter(pl.col("place") == 0).select("session_id", "kind").iter_rows())
    assert goals["kind"].n_unique() == len(WORDS)
    for i in range(6):
        assert kinds[f"both{i:02}"] == kinds["fly00"] and len(begins(goals, f"both{i:02}")) == 2


def test_short_requests_in_scripts_with_and_without_spaces_fall_into_their_kinds() -> None:
    words = requests(corpus.HOME, 240, 11)
    families = families_of(words)
    kinds = [words.kinds[each] for each in sorted(words.kinds)]
    assert 12 <= len(set(families.values())) <= 48, "24 kinds"
    assert ari(kinds, [families[each] for each in sorted(words.kinds)]) > 0.4


def test_families_of_words_do_not_depend_on_the_order_of_sessions() -> None:
    words = requests(corpus.SHOP, 150, 12)
    turned = WordSet(dict(reversed(words.talks.items())), words.kinds)
    families = families_of(words)
    assert families == families_of(turned)
    assert len(set(families.values())) > 5
