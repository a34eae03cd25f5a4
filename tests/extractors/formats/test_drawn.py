"""Tokens of an answer: taken where they are stated, never made up."""

from __future__ import annotations

import pytest

from extractors.formats.usage import drawn


@pytest.mark.parametrize(("stated", "told"), [
    (([1, 2], [3], [-0.5]), {"prompt_token_ids": [1, 2], "completion_token_ids": [3], "logprobs": [-0.5]}),
    ((None, None, {"content": [{"token": "a", "logprob": -1.5}, {"token": "b", "logprob": 0}]}), {"logprobs": [-1.5, 0]}),
    ((None, None, {"content": [{"token": "a"}]}), {}),
    (([], "3", [True]), {}),
    ((["1"], [1.5], {"content": None}), {}),
])
def test_tokens_are_taken_where_they_are_stated(stated: tuple[object, object, object], told: dict[str, object]) -> None:
    assert drawn(*stated) == told
