"""Which answers say that a call failed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from env_builder.runtime.answers import failed


@pytest.mark.parametrize("answer", [
    {"fault": "queue_empty"}, {"fault": "unknown_track", "detail": "Zephyr"}, {"err": "no", "code": 7}, {"exception": "E"}])
def test_an_object_of_nothing_but_a_named_fault_is_a_failure(answer: dict[str, Any]) -> None:
    assert failed(json.dumps(answer), answer)
    assert not failed(json.dumps(answer), answer, flagged=False), "the log's own flag says more"


@pytest.mark.parametrize("answer", [{"fault": None, "message": "started"}, {"fault": "P0301", "car": "C1"}, {"faults": ["a"]}])
def test_a_record_with_a_field_for_faults_is_no_failure(answer: dict[str, Any]) -> None:
    assert not failed(json.dumps(answer), answer)
