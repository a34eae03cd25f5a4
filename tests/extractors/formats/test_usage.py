from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from extractors.formats.sampling import tokens
from tests.extractors.formats.provider_reading import JSON


@pytest.mark.parametrize(("stated", "ours"), [
    ({"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 6},
      "completion_tokens_details": {"reasoning_tokens": 1}},
     {"input_tokens": 10, "output_tokens": 4, "cached_tokens": 6, "reasoning_tokens": 1}),
    ({"input_tokens": 10, "cache_read_input_tokens": 6, "cache_creation_input_tokens": 2, "output_tokens": 4},
     {"input_tokens": 18, "output_tokens": 4, "cached_tokens": 6}),
    ({"promptTokenCount": 10, "candidatesTokenCount": 4, "thoughtsTokenCount": 3, "cachedContentTokenCount": 6},
     {"input_tokens": 10, "output_tokens": 7, "cached_tokens": 6, "reasoning_tokens": 3}),
    ({"input_tokens": 10, "cached_input_tokens": 6, "output_tokens": 4, "reasoning_output_tokens": 1},
     {"input_tokens": 10, "output_tokens": 4, "cached_tokens": 6, "reasoning_tokens": 1}),
    ({"total_tokens": 9}, None), (None, None), ({"input_tokens": True, "output_tokens": -1}, None),
])
def test_every_provider_counts_alike(stated: Any, ours: Any) -> None:
    assert tokens(stated) == ours


@given(JSON)
def test_any_value_is_counted_or_not(stated: Any) -> None:
    usage_row = tokens(stated)
    assert usage_row is None or (usage_row and all(isinstance(count, int) and count >= 0 for count in usage_row.values()))
