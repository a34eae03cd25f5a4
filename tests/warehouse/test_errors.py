"""An error is one sentence: where, what, the hint."""

from __future__ import annotations

import pytest

from warehouse import errors
from warehouse.errors import GateFailed, InputError, Missing, TraceroomError


def every(kind: type[TraceroomError]) -> list[type[TraceroomError]]:
    return [kind, *(found for child in kind.__subclasses__() for found in every(child))]


def test_the_sentence() -> None:
    assert str(InputError("this is no JSON", "a.jsonl, line 3", "hint the line")) == (
        "a.jsonl, line 3: this is no JSON; hint the line.")
    assert str(InputError("nothing to read")) == "nothing to read."


def test_the_drawing_shows_every_error_under_its_parent() -> None:
    lines = (errors.__doc__ or "").splitlines()
    depth = {word: line.index(word) for line in lines for word in line.split()[:4] if hasattr(errors, word)}
    for kind in every(TraceroomError):
        assert kind.__name__ in depth, kind
        for child in kind.__subclasses__():
            assert depth[child.__name__] == depth[kind.__name__] + 4, child


def test_exit_codes() -> None:
    assert {kind.exit_code for kind in every(TraceroomError)} == {1, 2}
    assert GateFailed.exit_code == 1


@pytest.mark.parametrize(("known", "says"), [
    (["verifiers", "harbor"], "no exporter 'harbr'; there are: harbor, verifiers."),
    ([], "no exporter 'harbr'; there are none."),
    ([f"e{n}" for n in range(20)] + ["harbor"], "did you mean 'harbor'?"),
])
def test_a_miss_lists_what_is_known(known: list[str], says: str) -> None:
    assert says in str(Missing.named("exporter", "harbr", known))
