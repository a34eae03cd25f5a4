"""Grading: what holds of every rubric and episode, and what each kind of check sees."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.canonical import canonical
from env_builder.runtime.grading import grade, potential, shaped
from env_builder.runtime.records import Episode, Grade
from env_builder.runtime.rubrics import ParsedRubric

OPEN = {"documents": {"door/7": '{"open":true,"n":1}'}, "write_calls": []}
LETTER = {"documents": {}, "write_calls": [["send", '{"text":"one","to":"ann"}']]}
EMPTY: dict[str, Any] = {"documents": {}, "write_calls": []}


def call(tool: str, tier: str = "recorded", failed: bool = False, **arguments: Any) -> dict[str, Any]:
    return {"kind": "call", "tool": tool, "arguments": arguments, "content": "ok", "is_error": failed, "tier": tier}


def say(text: str) -> dict[str, Any]:
    return {"kind": "say", "content": text, "reply": None}


def episode(*journal: dict[str, Any], difference: dict[str, Any] = EMPTY, unknown_writes: tuple[Any, ...] = ()) -> Episode:
    return Episode(journal, difference, unknown_writes, frozenset({"open", "send"}))


def check(kind: str, role: str = "gate", weight: float = 1.0, **parameters: Any) -> dict[str, Any]:
    return {
        "check_id": f"{kind}-{role}-{canonical(parameters)}",
        "kind": kind,
        "role": role,
        "weight": weight,
        "description": "",
        "parameters": parameters,
    }


def judge(played: Episode, *checks: dict[str, Any], mode: str = "eval") -> Grade:
    return grade({"rubric_id": "r", "task_id": "t", "checks": list(checks)}, played, mode)


END = (check("state", accepted=[OPEN]), check("untouched", accepted=[OPEN]))


def test_the_accepted_end_is_worth_one_and_nothing_is_worth_nothing() -> None:
    assert judge(episode(difference=OPEN), *END).reward == 1.0
    assert judge(episode(), *END).reward == 0.0


def test_an_end_state_is_equal_by_meaning_not_by_its_text() -> None:
    other = {"documents": {"door/7": '{"n": 1.0, "open": true}'}, "write_calls": []}
    assert judge(episode(difference=other), *END).reward == 1.0


@pytest.mark.parametrize("value", ['{"open":1,"n":1}', '{"open":true,"n":true}', '{"open":true,"n":"1"}', None, "{"])
def test_another_value_is_another_end_state(value: str | None) -> None:
    assert judge(episode(difference={"documents": {"door/7": value}, "write_calls": []}), *END).reward == 0.0


@pytest.mark.parametrize(
    "more",
    [
        {"documents": {**OPEN["documents"], "door/8": None}, "write_calls": []},
        {"documents": OPEN["documents"], "write_calls": LETTER["write_calls"]},
    ],
)
def test_a_further_change_fails_untouched_alone(more: dict[str, Any]) -> None:
    state, untouched = judge(episode(difference=more), *END).checks
    assert state.passed and not untouched.passed
    assert judge(episode(difference=more), *END).reward == 0.0


def test_halves_of_two_accepted_ends_are_neither() -> None:
    one = {"documents": {"a": "1"}, "write_calls": []}
    two = {"documents": {"a": "2", "b": "1"}, "write_calls": []}
    both = [check(kind, accepted=[one, two]) for kind in ("state", "untouched")]
    assert judge(episode(difference={"documents": {"a": "1", "b": "1"}, "write_calls": []}), *both).reward == 0.0
    assert judge(episode(difference=one), *both).reward == judge(episode(difference=two), *both).reward == 1.0


def test_acts_are_counted() -> None:
    once = [check(kind, accepted=[LETTER]) for kind in ("state", "untouched")]
    twice = {"documents": {}, "write_calls": LETTER["write_calls"] * 2}
    assert judge(episode(difference=LETTER), *once).reward == 1.0
    assert judge(episode(difference=twice), *once).reward == 0.0


def test_masked_arguments_and_tools_aside_do_not_count() -> None:
    other = {"documents": {}, "write_calls": [["send", '{"text":"two","to":"ann"}'], ["note", '{"text":"x"}']]}
    loose = [
        check(k, accepted=[LETTER], ignored_arguments={"send": ["text"]}, ignored_tools=["note"])
        for k in ("state", "untouched")
    ]
    assert judge(episode(difference=other), *loose).reward == 1.0
    assert (
        judge(episode(difference={"documents": {}, "write_calls": [["send", '{"text":"one","to":"bob"}']]}), *loose).reward
        == 0.0
    )


def test_nothing_accepted_is_never_reached() -> None:
    assert judge(episode(), check("state", accepted=[])).reward == 0.0
    assert judge(episode(), check("untouched", accepted=[])).reward == 0.0


def test_must_not_write() -> None:
    gate = check("must_not_write", ignored_tools=["note"])
    assert judge(episode(difference={"documents": {}, "write_calls": [["note", "{}"]]}), gate).reward == 1.0
    assert judge(episode(difference=LETTER), gate).reward == judge(episode(difference=OPEN), gate).reward == 0.0


def test_said_hears_the_agent_alone() -> None:
    gate = check("said", facts=[{"type": "number", "value": "1234.5"}, {"type": "words", "value": "Two Keys"}])
    assert judge(episode(say("It costs 1,234.50"), say("for two  keys")), gate).reward == 1.0
    claimed = {**call("look"), "content": "1234.5 for two keys"}
    replied = {**say("Hello"), "reply": "1234.5 for two keys"}
    assert judge(episode(claimed, replied), gate).reward == 0.0
    assert judge(episode(say("1234.5")), check("said", facts=[])).reward == 0.0


@pytest.mark.parametrize(
    "text", ["%s{0}{episode.__class__}", "__import__('os')", "(a+)+$" * 50, "\\", "\x00", "1" * 5000]
)
def test_hostile_words_are_only_words(text: str) -> None:
    assert judge(episode(say(text)), check("said", facts=[{"type": "number", "value": "12"}])).reward == 0.0
    assert judge(episode(say(text)), check("spoke")).reward == 1.0


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"kind": "say"},
        {"kind": "say", "content": 7},
        {"kind": "call", "tool": 3},
        {"kind": "call", "tool": "look", "arguments": None},
        {"kind": "finish"},
    ],
)
def test_a_broken_journal_row_earns_nothing(row: dict[str, Any]) -> None:
    wanted = [check("spoke"), check("call", calls=[{"tool": "look", "arguments": {"n": 1}}], at_least=1)]
    assert judge(episode(row), *wanted).reward == 0.0


def test_calls_required_forbidden_and_constrained() -> None:
    wanted = [{"tool": "look", "arguments": {"n": 1}}, {"tool": "look", "arguments": {"n": 2}}]
    both, none = check("call", calls=wanted, at_least=2), check("call", calls=wanted, at_most=0)
    looked = episode(call("look", n=1, verbose=True), call("look", n=2))
    assert judge(looked, both).reward == 1.0 and judge(looked, none).reward == 0.0
    assert judge(episode(call("look", n=1), call("look", n=1)), both).reward == 0.0
    assert judge(episode(call("look", n=1), call("look", failed=True, n=2)), both).reward == 0.0
    assert judge(episode(call("look", n=3)), none).reward == 1.0
    assert judge(episode(call("look", n=1)), check("call", calls=wanted)).reward == 0.0
    assert judge(episode(call("look", n=1.0)), check("call", calls=wanted, at_least=1)).reward == 1.0
    assert judge(episode(call("look", n=True)), check("call", calls=wanted, at_least=1)).reward == 0.0


def test_a_look_up_that_the_room_had_no_answer_to_was_asked_for_but_an_act_is_open() -> None:
    look, send = call("look", "unknown", failed=True, n=1), call("send", "unknown", failed=True, n=1)
    looked = check("call", calls=[{"tool": "look", "arguments": {"n": 1}}], at_least=1)
    sent = check("call", calls=[{"tool": "send", "arguments": {"n": 1}}], at_least=1)
    assert judge(episode(look), looked).reward == 1.0
    assert judge(episode(send, unknown_writes=(send,)), sent).reward is None
    assert judge(episode(send, unknown_writes=(send,)), looked).reward == 0.0


@pytest.mark.parametrize("checks", [(), (check("spoke", "diagnostic"),), (check("spoke", "penalty"),)])
def test_a_rubric_without_gates_and_scores_never_passes(checks: tuple[Any, ...]) -> None:
    assert judge(episode(say("done")), *checks).reward == 0.0


def test_scores_are_shared_by_weight_and_penalties_go_below_zero_in_training_alone() -> None:
    scores = check("spoke", "score", 3.0), check("must_not_write", "score", 1.0)
    assert judge(episode(say("a"), difference=OPEN), *scores).reward == 0.75
    fine = check("call", "penalty", 0.5, calls=[{"tool": "look"}], at_most=0)
    assert judge(episode(say("a"), call("look"), difference=OPEN), *scores, fine).reward == 0.25
    looked = episode(call("look"), difference=OPEN)
    assert judge(looked, *END, check("spoke"), fine, mode="train").reward == -0.5
    assert judge(looked, *END, check("spoke"), fine).reward == 0.0
    assert judge(looked, *END, fine).reward == judge(looked, *END, fine, mode="train").reward == 0.5
    with pytest.raises(ValueError, match="no mode 'test'; there are: eval, train"):
        judge(looked, *END, mode="test")


def test_an_unknown_answer_leaves_the_outcome_open_only_where_it_hangs_on_it() -> None:
    row = call("open", "unknown", failed=True, door=7)
    assert judge(episode(row, unknown_writes=(row,)), *END).reward is None
    assert judge(episode(row, unknown_writes=(row,)), *END, check("spoke")).reward == 0.0
    assert judge(episode(row, difference=LETTER, unknown_writes=(row,)), *END).reward == 0.0, "acts do not go away"
    assert judge(episode(say("x"), row, unknown_writes=(row,)), check("spoke")).reward == 1.0
    known = episode(row, unknown_writes=(row,))._replace(look=lambda name: ('{"open":false}', '{"open":false}'))
    assert judge(known, *END).reward == 0.0, "a thing that no such act can touch is not what it should be"
    touched = known._replace(look=lambda name: ('{"open":false}', None))
    assert judge(touched, *END).reward is None, "what it may have touched nobody knows"
    note = call("note", "unknown", failed=True)
    ignored_tools = [check(kind, accepted=[OPEN], ignored_tools=["note"]) for kind in ("state", "untouched")]
    assert judge(episode(note, difference=OPEN, unknown_writes=(note,)), *ignored_tools).reward == 1.0


@pytest.mark.parametrize(
    "broken",
    [check("mood"), check("spoke", "bonus"), check("spoke", "score", float("nan")), check("spoke", "score", -1.0)],
)
def test_a_broken_rubric_is_an_error(broken: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        judge(episode(), broken)


documents = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["1", "2", '{"x":1}', None]), max_size=3)
acts = st.lists(st.sampled_from([["send", '{"to":"ann"}'], ["send", '{"to":"bob"}'], ["open", "{}"]]), max_size=3)
differences = st.builds(lambda d, a: {"documents": d, "write_calls": sorted(a)}, documents, acts)
rows = st.one_of(
    st.builds(say, st.sampled_from(["hello", "12", ""])),
    st.builds(lambda n, tier: call("look", tier, n=n), st.integers(1, 3), st.sampled_from(["recorded", "unknown"])),
)
pattern = st.builds(lambda n: {"tool": "look", "arguments": {"n": n}}, st.integers(1, 3))
ends = st.fixed_dictionaries({"accepted": st.lists(differences, max_size=3)})
patterns = st.lists(pattern, min_size=1, max_size=3)
facts = st.fixed_dictionaries({"facts": st.lists(st.just({"type": "number", "value": "12"}), min_size=1, max_size=2)})
parameters = {
    "state": ends,
    "untouched": ends,
    "must_not_write": st.just({}),
    "said": facts,
    "not_said": facts,
    "spoke": st.fixed_dictionaries({"at_least": st.integers(0, 2)}),
    "call": st.fixed_dictionaries({"calls": patterns, "at_least": st.integers(0, 2)}),
    "order": st.fixed_dictionaries({"template": st.just("response"), "first": patterns, "second": patterns}),
}
veto = st.builds(lambda given: {"how": "veto", "checks": [{"kind": "state", "parameters": given}]}, ends)
kinds = [*(st.tuples(st.just(kind), given) for kind, given in parameters.items()), st.tuples(st.just("combine"), veto)]
rubrics = st.lists(
    st.builds(
        lambda kind, role, weight: check(kind[0], role, weight, **kind[1]),
        st.one_of(kinds),
        st.sampled_from(["gate", "score", "penalty", "shaping", "diagnostic"]),
        st.floats(0, 3),
    ),
    max_size=5,
)
modes = st.sampled_from(["eval", "train"])
unknown_writes = st.sampled_from([(), (call("open", "unknown", failed=True),)])
episodes = st.builds(
    lambda j, d, u: episode(*j, difference=d, unknown_writes=u), st.lists(rows, max_size=4), differences, unknown_writes
)


@given(rubrics, episodes, modes)
def test_rewards_stay_in_range_and_are_the_same_twice(checks: list[Any], played: Episode, mode: str) -> None:
    one, two = judge(played, *checks, mode=mode), judge(played, *checks, mode=mode)
    assert one == two and canonical(one.checks) == canonical(two.checks)
    assert one.reward is None or -1.0 <= one.reward <= 1.0
    assert one.reward is None or one.reward >= 0 or (mode == "train" and any(c["role"] == "penalty" for c in checks))
    assert len(one.checks) == len(checks)
    trained = judge(played, *checks, mode="train").reward
    assert mode == "train" or trained is None or one.reward == max(0.0, trained)
    assert one.tally.startswith(f"{sum(c.passed is True for c in one.checks)}/{len(checks)} ")


@given(rubrics, st.lists(episodes, min_size=2, max_size=6), st.sampled_from([1.0, 0.9, 0.5]))
def test_shaping_never_changes_what_is_best(checks: list[Any], steps: list[Episode], discount: float) -> None:
    """Discounted and added up, the steps are worth the end and what the beginning alone decides (Ng, Harada, Russell 1999)."""
    rubric = ParsedRubric.read({"checks": checks})
    rewards, end = shaped(rubric, steps, discount), grade(rubric, steps[-1], "train").reward
    assert (rewards is None) == (end is None)
    if rewards is not None and end is not None:
        assert len(rewards) == len(steps) - 1
        total = sum(discount**at * reward for at, reward in enumerate(rewards))
        assert total == pytest.approx(discount ** (len(rewards) - 1) * end - potential(rubric, steps[0]))


def test_a_step_towards_the_goal_is_worth_something_before_the_end() -> None:
    ends = [check("state", accepted=[{"documents": {**OPEN["documents"], "door/8": "1"}, "write_calls": []}])]
    half = episode(difference=OPEN)
    whole = episode(difference={"documents": {**OPEN["documents"], "door/8": "1"}, "write_calls": []})
    assert shaped({"checks": ends}, [episode(), half, half, whole]) == pytest.approx((0.5, 0.0, 0.5))
    steered = [*ends, check("spoke", "shaping")]
    assert shaped({"checks": steered}, [episode(), episode(say("a")), whole]) == pytest.approx((1.0, 0.0))
    with pytest.raises(ValueError, match="discount"):
        shaped({"checks": ends}, [episode(), half], 1.5)


@given(rubrics, episodes, st.randoms(use_true_random=False))
def test_the_order_of_checks_acts_and_documents_does_not_matter(
    checks: list[Any], played: Episode, rng: random.Random
) -> None:
    shuffled = rng.sample(checks, len(checks))
    changed = played.difference
    names = rng.sample(sorted(changed["documents"]), len(changed["documents"]))
    other = played._replace(
        difference={
            "write_calls": rng.sample(changed["write_calls"], len(changed["write_calls"])),
            "documents": {name: changed["documents"][name] for name in names},
        }
    )
    one, two = judge(played, *checks).reward, judge(other, *shuffled).reward
    assert one == two or (one is not None and two is not None and abs(one - two) < 1e-9)


@given(differences, differences)
def test_both_halves_of_the_end_state_hold_exactly_on_equal_differences(
    wanted: dict[str, Any], found: dict[str, Any]
) -> None:
    both = [check(kind, accepted=[wanted]) for kind in ("state", "untouched")]
    assert (judge(episode(difference=found), *both).reward == 1.0) == (wanted == found)


@given(st.lists(differences, min_size=1, max_size=3), episodes, rubrics)
def test_a_forbidden_write_never_raises_the_reward(accepted: list[Any], played: Episode, others: list[Any]) -> None:
    ends = [check(kind, accepted=accepted) for kind in ("state", "untouched")]
    rest = [c for c in others if c["kind"] in ("said", "spoke", "call")]
    changed = {**played.difference, "write_calls": [*played.difference["write_calls"], ["burn", "{}"]]}
    before, after = judge(played, *ends, *rest).reward, judge(played._replace(difference=changed), *ends, *rest).reward
    assert after is not None or before is None
    assert after is None or before is None or after <= before


@given(rubrics, episodes)
def test_an_unscored_grade_needs_an_unknown_answer(checks: list[Any], played: Episode) -> None:
    if judge(played, *checks).reward is None:
        assert played.unknown_writes


def rewards(document: dict[str, Any], played: Episode) -> tuple[float | None, float | None]:
    """Return the reward in each mode."""
    return grade(document, played, "eval").reward, grade(document, played, "train").reward


def partly(*checks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"rubric_id": "r", "task_id": "t", "checks": list(checks), **fields}


@pytest.mark.parametrize("partial", [0.1, 0.25, 0.5])
def test_a_failed_gate_is_paid_in_part_in_training_alone_and_below_every_pass(partial: float) -> None:
    opened = check("call", "shaping", 1.0, calls=[{"tool": "open", "arguments": {}}], at_least=1)
    shaping = [check("state", "shaping", 3.0, accepted=[LETTER]), opened]
    document = partly(*END, *shaping, partial=partial)
    assert rewards(document, episode()) == (0.0, 0.0)
    assert rewards(document, episode(call("open"))) == (0.0, partial * 0.25)
    assert rewards(document, episode(call("open"), difference=LETTER)) == (0.0, partial)
    assert rewards(document, episode(difference=OPEN)) == (1.0, 1.0)


def test_without_shaping_checks_or_without_partial_a_failed_gate_is_paid_nothing() -> None:
    shaping = check("call", "shaping", calls=[{"tool": "open", "arguments": {}}], at_least=1)
    assert rewards(partly(*END, partial=0.5), episode(call("open"))) == (0.0, 0.0)
    assert rewards(partly(*END, shaping), episode(call("open"))) == (0.0, 0.0)


def test_a_penalty_of_a_mode_costs_in_it_alone() -> None:
    penalty = check("call", "penalty", 0.75, calls=[{"tool": "send", "arguments": {}}], at_least=1) | {"modes": ["train"]}
    document = partly(*END, penalty, partial=0.5)
    assert rewards(document, episode(difference=OPEN)) == (1.0, 0.25)
    assert rewards(document, episode(call("send"), difference=OPEN)) == (1.0, 1.0)
    assert rewards(document, episode()) == (0.0, -0.75)
    always = partly(*END, penalty | {"modes": ["train", "eval"]})
    assert rewards(always, episode(difference=OPEN)) == (0.25, 0.25)


@pytest.mark.parametrize("fields", [{"partial": 0.51}, {"partial": -0.1}, {"partial": "1"}, {"partial": float("nan")},
                                    {"checks": [END[0] | {"modes": []}]}, {"checks": [END[0] | {"modes": ["test"]}]}])
def test_partial_pay_and_modes_have_their_bounds(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="rubric r"):
        ParsedRubric.read(partly(*END) | fields)


@given(st.lists(st.sampled_from([call("open"), call("send"), say("yes")]), max_size=3), st.sampled_from([OPEN, LETTER, EMPTY]))
def test_a_rubric_without_the_new_fields_grades_as_with_those_that_change_nothing(
        journal: list[dict[str, Any]], difference: dict[str, Any]) -> None:
    penalty = check("call", "penalty", 0.5, calls=[{"tool": "send", "arguments": {}}], at_least=1)
    score = check("call", "score", 2.0, calls=[{"tool": "open", "arguments": {}}], at_least=1)
    played = episode(*journal, difference=difference)
    old, new = partly(*END, score, penalty), partly(*END, score, penalty, partial=0.0)
    assert rewards(old, played) == rewards(new, played)


def test_what_no_verifier_can_say_leaves_an_episode_unscored() -> None:
    gate = check("verified", part="fail_to_pass")
    assert rewards(partly(gate, partial=0.5), episode()) == (None, None)
    assert rewards(partly(*END, gate), episode()) == (0.0, 0.0)
    with pytest.raises(ValueError, match="part"):
        ParsedRubric.read(partly(check("verified", part="mood")))
