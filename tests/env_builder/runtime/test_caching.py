"""What the runtime keeps of texts is bounded in characters, over all its caches."""

from __future__ import annotations

from env_builder.runtime.caching import MOST_CHARACTERS, cached
from env_builder.runtime.precedents import PastCall


def test_a_text_that_comes_again_is_not_computed_again() -> None:
    computed: list[str] = []

    @cached(8)
    def shout(text: str) -> str:
        computed.append(text)
        return text.upper()

    assert [shout("a"), shout("b"), shout("a")] == ["A", "B", "A"]
    assert computed == ["a", "b"]


def test_long_texts_empty_every_cache() -> None:
    @cached(1000)
    def length(text: str) -> int:
        return len(text)

    @cached(1000)
    def length_of(call: PastCall) -> int:
        return len(call.content or "")

    length("short")
    long = "x" * (MOST_CHARACTERS // 8)
    for number in range(20):
        length_of(PastCall("tool", "{}", f"{number}{long}", failed=False))
        assert length_of.cache_info().currsize <= 8
    assert length.cache_info().currsize == 0
    assert length(long) == len(long), "a text at the bound is answered all the same"
