"""The language model's door, against a real server on loopback that speaks the wire format."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pipelines.dagster_assets.settings_resource import SettingsResource
from pipelines.resources import ask_from_environment, connect
from pipelines.settings import Settings
from tests.endpoint import Endpoint, answering
from warehouse.errors import InputError, Unavailable


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with answering(str.upper) as server:
        yield server


def test_it_asks_and_answers(endpoint: Endpoint) -> None:
    ask = connect(endpoint.url, "small", "secret")
    assert ask("is anybody there?") == "IS ANYBODY THERE?"
    assert endpoint.asked[0]["model"] == "small" and endpoint.asked[0]["temperature"] == 0
    assert endpoint.keys == ["Bearer secret"]


def test_it_tries_again_twice(endpoint: Endpoint) -> None:
    endpoint.failures = [503, 429]
    assert connect(endpoint.url, "small", "k")("again") == "AGAIN"
    assert len(endpoint.asked) == 3


@pytest.mark.parametrize(
    ("failures", "what"), [([400], "refuses"), ([401], "does not answer"), ([500, 500, 500], "does not answer")])
def test_what_does_not_get_better_is_said(endpoint: Endpoint, failures: list[int], what: str) -> None:
    endpoint.failures = list(failures)
    with pytest.raises(Unavailable, match=rf"the model 'small' {what} \(.*not now.*TRACEROOM_MODEL_URL"):
        connect(endpoint.url, "small", "k")("anything")
    assert len(endpoint.asked) == len(failures)


def test_nobody_there_is_said() -> None:
    with pytest.raises(Unavailable, match="does not answer"):
        connect("http://127.0.0.1:9/v1", "small", "k", timeout_s=2)("anything")


def test_it_is_none_where_nothing_is_configured(monkeypatch: pytest.MonkeyPatch, endpoint: Endpoint) -> None:
    for name in ("TRACEROOM_MODEL", "TRACEROOM_MODEL_URL", "TRACEROOM_MODEL_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert ask_from_environment() is None
    monkeypatch.setenv("TRACEROOM_MODEL", "small")
    with pytest.raises(InputError, match="TRACEROOM_MODEL_URL: the language model is configured by half"):
        ask_from_environment()
    monkeypatch.setenv("TRACEROOM_MODEL_URL", endpoint.url)
    ask = ask_from_environment()
    assert ask is not None and ask("yes") == "YES"


def test_settings_travel_as_json_or_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Settings(logs=("a", "b"), out="o", only=("logs",), until="2026-03-02")
    assert SettingsResource(document=told.model_dump_json()).settings() == told
    monkeypatch.setenv("TRACEROOM_INBOX", "/in")
    monkeypatch.setenv("TRACEROOM_OUT", "/out")
    monkeypatch.setenv("TRACEROOM_IMAGE", "off")
    assert SettingsResource().settings() == Settings(logs=("/in",), out="/out", image=False)
