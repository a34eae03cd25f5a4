"""The language model's door, against a real server on loopback that speaks the wire format."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from pipelines.resources import SettingsResource, ask_from_environment, connect
from pipelines.settings import Settings
from warehouse.errors import InputError, Unavailable


class Endpoint(ThreadingHTTPServer):
    """Answers chat completions with the prompt in capitals, after failing as often as it is told."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.failures: list[int] = []
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(asked)
        self.server.keys.append(self.headers["Authorization"])
        status = self.server.failures.pop(0) if self.server.failures else 200
        message = {"role": "assistant", "content": asked["messages"][0]["content"].upper()}
        answer = {"id": "c", "object": "chat.completion", "created": 1, "model": asked["model"],
                  "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
        body = json.dumps(answer if status == 200 else {"error": {"message": "not now"}}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = Endpoint()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def test_it_asks_and_answers(endpoint: Endpoint) -> None:
    ask = connect(endpoint.url, "small", "secret")
    assert ask("is anybody there?") == "IS ANYBODY THERE?"
    assert endpoint.asked[0]["model"] == "small" and endpoint.asked[0]["temperature"] == 0
    assert endpoint.keys == ["Bearer secret"]


def test_it_tries_again_twice(endpoint: Endpoint) -> None:
    endpoint.failures = [503, 429]
    assert connect(endpoint.url, "small", "k")("again") == "AGAIN"
    assert len(endpoint.asked) == 3


@pytest.mark.parametrize("failures", [[400], [401], [500, 500, 500]])
def test_what_does_not_get_better_is_said(endpoint: Endpoint, failures: list[int]) -> None:
    endpoint.failures = list(failures)
    with pytest.raises(Unavailable, match=r"the model 'small' does not answer \(.*not now.*TRACEROOM_MODEL_URL"):
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
