"""The contract of every kind of check that is installed, and the published schema of rubrics."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from env_builder.bundle import validated
from env_builder.rewards.policies import prompt
from env_builder.runtime.canonical import canonical
from env_builder.runtime.checks import OWN, CheckKind, kind_of, kinds
from env_builder.runtime.checks.kind import EpisodeView
from env_builder.runtime.checks.verified import PARTS
from env_builder.runtime.grading import grade
from env_builder.runtime.records import Episode
from env_builder.runtime.rubrics import FORMAT, ParsedRubric, schema
from tests.conftest import ROOT
from warehouse.errors import InputError

END = {"documents": {"door/7": '{"open":true}'}, "write_calls": [["send", '{"to":"ann"}']]}
LOOK = {"tool": "look", "arguments": {"n": 1}}
EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "state": [{"accepted": [END], "ignored_arguments": {"send": ["to"]}, "ignored_tools": ["note"]}],
    "untouched": [{"accepted": [END], "ignored_fields": {"door": [["notes", None, "text"]]}}],
    "must_not_write": [{"ignored_tools": ["send"]}],
    "said": [{"facts": [{"type": "number", "value": "12.50"}, {"type": "words", "value": "two keys"}], "at_least": 1}],
    "not_said": [{"facts": [{"type": "id", "value": "AB-1234"}]}],
    "spoke": [{"at_least": 2}],
    "declined": [{"wanted": True}, {"wanted": False, "claims": False}],
    "not_denied": [{"after": [LOOK]}, {"after": [{"tool": ["open", "close"]}], "wholly": True}],
    "promised": [{"claims": ["has been sent"], "calls": [{"tool": "send"}], "unless": ["not"], "before": True}],
    "call": [{"calls": [LOOK], "at_least": 1}, {"calls": [{"tool": "look", "where": {
        "n": {"one_of": [1, 2], "at_least": 1, "type": "integer"}, "/a/b": {"same_as": {"tool": "list", "at": "/0/id"}},
        "x": {"given": False}, "t": {"contains": "a", "above": "a"}}}], "at_most": 0, "times_at_least": 1}],
    "order": [{"template": "precedence", "first": [LOOK], "second": [{"tool": None, "effect": "write"}],
               "alike": [["n", "/n"]]},
              {"template": "last", "first": [{"say": True}]}],
    "honeypot": [{"records": ["door/99"], "fields": ["override"], "calls": [{"tool": "burn"}],
                  "facts": [{"type": "id", "value": "key99"}]}],
    "sql": [{"query": "select count(*) = 1 from documents where json_extract(value, '$.open')", "entities": ["door/7"]}],
    "file": [{"document": "door/7", "at": "/open", "contains": ["x"], "sha256": ["0" * 64], "unchanged": False}],
    "process": [{"call": {"tool": "run"}, "result": {"/code": 0}, "untouched": ["file/tests/"], "documents_at_most": 3,
                 "lines_at_most": 20, "at": "/text"}],
    "confined": [{"accepted": [END], "ignored_tools": ["send"], "allowed": [{"documents": "door/"}, {
        "documents": "file/tests/", "new": True, "at_most": 1, "where": {"/origin": {"given": True}}}]}],
    "lineage": [{"origins": ["a"]}, {"origins": []}],
    "listed": [{"messages": "door/", "names": ["a b.txt", "b.txt"], "text": "/n", "files": "file/tests/", "others": ["ann"]},
               {"messages": "file/", "text": "", "files": "x"}],
    "verified": [{"part": part} for part in PARTS],
    "record": [{"record": {"class": "door", "id": "7"}, "has": {"open": {"is": True}, "rows": {"row": [{"is": "a"}, {}]}}},
               {"record": {"class": "file", "where": {"x": {"names": {"class": "door", "id": "7"}}}},
                "has": {"text": {"holds": ["ann"], "no_line": "b"}, "of": {"member": ["ann"], "no_member": ["bob"]}}}],
    "bounded": [{"class": "door", "allowed": [{"id": "7", "fields": {"open": {}, "text": {"lost": [["a"]], "added": 1}}},
                                              {"where": {"to": {"is": "ann"}}, "at_most": 1}], "ignored": ["seen"]},
                {"class": "door", "id": "7", "allowed": []}],
    "preceded": [{"first": {"class": "door", "where": {"by": {"is": "ann"}}}, "second": {"class": "file", "id": "tests/a"}}],
    "withheld": [{"words": ["ann", "ab1234"]}],
    "judge": [{"criteria": [{"name": "kind", "text": "Is it kind?", "weight": 2, "choices": ["no", "partly", "yes"]}]}],
    "combine": [{"how": "threshold", "at_least": 1, "checks": [
        {"kind": "spoke", "parameters": {}}, {"kind": "combine", "parameters": {"how": "veto", "checks": [
            {"kind": "must_not_write", "parameters": {}, "weight": 2}]}}]}],
}  # fmt: skip
"""Parameters of each kind of ours; a package's kind brings its own as the attribute `examples` of its module."""


def examples(name: str) -> list[dict[str, Any]]:
    if name in OWN:
        return EXAMPLES[name]
    found: list[dict[str, Any]] = vars(sys.modules[type(kind_of(name)).__module__])["EXAMPLES"]
    return found


def rubric(kind: str, parameters: Any, role: str = "gate") -> dict[str, Any]:
    check = {"check_id": "c", "kind": kind, "role": role, "weight": 1.0, "description": "", "parameters": parameters,
             "provenance": {}}
    return {"format": FORMAT, "rubric_id": "r", "task_id": "t", "checks": [check]}


CASES = [(name, given) for name in kinds() for given in examples(name)]


class Deep(list[Any]):
    """Lists within lists, too deep to be written or shown."""

    def __repr__(self) -> str:
        return "Deep()"


NESTED: list[Any] = []
for _ in range(5000):
    NESTED = [NESTED]
NESTED = Deep(NESTED)
values: Any = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.sampled_from([1, "ann", "\ud800"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=6,
)
named = st.sampled_from(["look", "send", "open", "run", "list", "burn", "", "\ud800"])
rows: Any = st.one_of(
    st.fixed_dictionaries({}, optional={
        "kind": st.one_of(st.sampled_from(["call", "say", "finish"]), values), "tool": st.one_of(named, values),
        "arguments": st.one_of(values, st.just({"n": 1}), st.just({"n": NESTED}), st.just({"a": {"b": float("nan")}})),
        "content": st.one_of(values, st.sampled_from(["[" * 9000, '[{"id": 1}]', "It has been sent. AB1234 \ud800 12.50"])),
        "reply": values, "is_error": values, "tier": st.one_of(st.sampled_from(["unknown", "recorded"]), values)}),
)  # fmt: skip
differences = st.fixed_dictionaries({
    "documents": st.dictionaries(
        st.sampled_from(["door/7", "file/tests/a", "x"]),
        st.one_of(st.none(), st.just('"a\\nb"'), st.text(max_size=8)), max_size=3),
    "write_calls": st.lists(st.sampled_from([["send", '{"to":"ann"}'], ["open", "{}"]]), max_size=2),
})  # fmt: skip
hostile = st.builds(
    lambda journal, difference, unknown_writes: Episode(
        tuple(journal), difference, tuple(unknown_writes), frozenset({"send", "open"}), lambda name: ('{"open":false}', None)),
    st.lists(rows, max_size=5), differences, st.lists(rows, max_size=2))  # fmt: skip


def test_every_kind_of_ours_has_examples() -> None:
    assert set(EXAMPLES) == set(OWN)


READY = [(name, given, kind_of(name), kind_of(name).prepare(given)) for name, given in CASES]


@settings(max_examples=80, deadline=None)
@given(hostile)
def test_every_kind_keeps_the_contract(played: Episode) -> None:
    """Deterministic, never raises, JSON evidence, and the other decision only where something was not known."""
    for name, parameters, kind, ready in READY:
        keeps(name, parameters, kind, ready, played)


def keeps(name: str, parameters: dict[str, Any], kind: CheckKind, ready: Any, played: Episode) -> None:
    found = kind.judge(ready, EpisodeView(played))
    again = kind.judge(kind.prepare(json.loads(canonical(parameters))), EpisodeView(played))
    assert canonical(found.evidence) == canonical(again.evidence), name
    assert found[:1] + found[2:] == again[:1] + again[2:], name
    assert found.passed in (True, False, None), name
    assert found.share is None or 0 <= found.share <= 1, name
    assert not found.depends_on_unknown or played.unknown_writes or found.passed is None, name
    assert found.passed is not None or found.depends_on_unknown, name


def test_the_kind_of_the_manual_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with the manual's own lines: found, held to the contract, and it tells more from less."""
    manual = (ROOT / "docs" / "rewards.md").read_text("utf-8").split("## Another kind")[1]
    code, points = (re.findall(rf"```{language}\n(.*?)```", manual, re.S)[0] for language in ("python", "toml"))
    assert len(code.splitlines()) < 50
    (tmp_path / "my_package").mkdir()
    (tmp_path / "my_package" / "__init__.py").touch()
    (tmp_path / "my_package" / "total.py").write_text(code, "utf-8")
    about = tmp_path / "my_package-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1\n", "utf-8")
    declared = re.sub(r'\[project.entry-points."(.*)"\]', r"[\1]", points).replace('"', "")
    (about / "entry_points.txt").write_text(declared, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert "total" in kinds() and "total" not in OWN
    try:
        kind, (given,) = kind_of("total"), examples("total")
        keeps_it = settings(max_examples=40, deadline=None)(hypothesis.given(hostile)(
            lambda played: keeps("total", given, kind, kind.prepare(given), played)))
        keeps_it()
        for amount, reward in ((100, 1.0), (100.5, 0.0)):
            paid = {"kind": "call", "tool": "pay", "arguments": {"amount": amount}, "content": "", "is_error": False}
            document = validated(rubric("total", given))
            assert grade(document, Episode((paid,), {"documents": {}, "write_calls": []}, (), frozenset())).reward == reward
        assert (kind.stops, kind.is_lost(kind.prepare(given), EpisodeView(Episode((), {}, (), frozenset())))) == ("path", False)
        assert f'"total": {kind.policy_form}' in prompt("Pay little.", ["pay"]), "a policy may ask for it"
        with pytest.raises(ValueError, match="'most', which is not known; there are: argument, at_most, call"):
            ParsedRubric.read(rubric("total", {**given, "most": 1}))
    finally:
        kind_of.cache_clear()
        sys.modules.pop("my_package.total")


@pytest.mark.parametrize("name", kinds())
def test_a_kind_says_what_it_takes(name: str) -> None:
    kind = kind_of(name)
    assert kind.description.endswith(".") and kind.parameters["type"] == "object"
    assert kind.parameters["additionalProperties"] is False
    Draft202012Validator.check_schema(kind.parameters)


@pytest.mark.parametrize(("name", "parameters"), CASES)
def test_unknown_parameters_and_other_shapes_are_refused_in_one_sentence(name: str, parameters: dict[str, Any]) -> None:
    ParsedRubric.read(validated(rubric(name, parameters)))
    for broken in ({**parameters, "mood": 1}, {**parameters, next(iter(parameters)): 3.5}, [parameters]):
        with pytest.raises(ValueError, match=r"^(check c \(|rubric r)") as refused:
            ParsedRubric.read(rubric(name, broken))
        assert "\n" not in str(refused.value)
        with pytest.raises(InputError, match="this is no rubric"):
            validated(rubric(name, broken))


def test_the_published_schema_is_that_of_the_kinds() -> None:
    """Made again with: python -c 'from env_builder.runtime.rubrics import schema; …', as the assertion's left side says."""
    Draft202012Validator.check_schema(schema())
    text = json.dumps(schema(), sort_keys=True, indent=1, ensure_ascii=False) + "\n"
    assert text == (ROOT / "docs" / "rubric.schema.json").read_text("utf-8")


WHOLE = Draft202012Validator(schema())


@st.composite
def mutated(draw: Any) -> dict[str, Any]:
    """Return a rubric, one place of which holds something else."""
    name = draw(st.sampled_from(sorted(OWN)))
    document = rubric(name, json.loads(json.dumps(draw(st.sampled_from(EXAMPLES[name])))))
    place: Any = document
    while isinstance(place, dict | list) and place:
        key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if draw(st.integers(0, 3)) == 0 or not isinstance(place[key], dict | list):
            others = st.sampled_from([[], {}])
            place[key] = draw(st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.text(max_size=2), others))
            break
        place = place[key]
    return document


@settings(max_examples=150, deadline=None)
@given(mutated())
def test_the_runtime_refuses_whatever_the_schema_refuses(document: dict[str, Any]) -> None:
    """The runtime's own validator and a full one say the same; beyond the schema a kind may refuse what means nothing."""
    try:
        ParsedRubric.read(document)
        taken = True
    except ValueError:
        taken = False
    if taken:
        assert WHOLE.is_valid(document)
        validated(document)
    elif WHOLE.is_valid(document):
        with pytest.raises(InputError):
            validated(document)


def test_a_kind_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(ValueError, match=r"check c \(mood\): no kind 'mood'; there are: bounded, call, combine, "):
        grade(rubric("mood", {}), Episode((), END, (), frozenset()))
    deep: dict[str, Any] = {"how": "all", "checks": [{"kind": "spoke", "parameters": {}}]}
    for levels, said in ((9, "no deeper than 8"), (3000, "too deep")):
        for _ in range(levels):
            deep = {"how": "all", "checks": [{"kind": "combine", "parameters": deep}]}
        with pytest.raises(ValueError, match=said):
            ParsedRubric.read(rubric("combine", deep))
