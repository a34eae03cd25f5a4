"""Kept answers of a model that somebody changed: no JSON, other types, depth, links; the model is asked again, and no run
ends."""

from __future__ import annotations

from pathlib import Path

from pipelines.resources import kept
from tests.attacks.report import Report

CONTENTS = (b"", b"{", b"null", b"[]", b'"x"', b"5", b"{}", b'{"answer": "x"}', b"\xff\xfe", b"[" * 100_000,
    b'{"reply": null}', b'{"reply": ["x"]}')


def attack(folder: Path, share: float) -> Report:
    """Put each content in the place of the kept answer, and ask again."""
    asked: list[str] = []

    def model(prompt: str) -> str:
        asked.append(prompt)
        return "the model's own words"

    ask, problems = kept(model, "m", folder / "answers"), []
    ask("what?")
    (path,) = (folder / "answers").glob("*.json")
    honest = path.read_bytes()
    for content in CONTENTS:
        path.write_bytes(content)
        try:
            reply = ask("what?")
            problems += [f"{content[:20]!r}: {reply!r}"] if not isinstance(reply, str) else []
        except Exception as error:
            problems.append(f"{content[:20]!r}: {type(error).__name__}: {error}")
    path.write_bytes(honest)
    n_asked = len(asked)
    problems += [] if ask("what?") == "the model's own words" and len(asked) == n_asked else ["a kept answer is not taken"]
    return Report(len(CONTENTS) + 1, tuple(problems))


def test_a_kept_answer_that_is_none_is_sought_again(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
