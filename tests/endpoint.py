"""A language model's endpoint on loopback: a real server that speaks OpenAI's chat completions."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Endpoint(ThreadingHTTPServer):
    """Answers chat completions by a function of the prompt, or of all that is asked, after failing as often as it is told."""

    def __init__(
        self, answer: Callable[[str], str], converse: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    ) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer
        self.converse = converse or (lambda asked: {"content": self.answer(asked["messages"][0]["content"])})
        self.failures: list[int] = []
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.further: dict[str, Any] = {}
        self.of_choice: dict[str, Any] = {}
        """Further fields of each answer, and of its choice."""

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
        message = {"role": "assistant", **self.server.converse(asked)}
        answer = {"id": "c", "object": "chat.completion", "created": 1, "model": asked["model"],
                  "usage": {"prompt_tokens": len(asked["messages"]), "completion_tokens": 1, "total_tokens": 1},
                  **self.server.further,
                  "choices": [{"index": 0, "finish_reason": "stop", "message": message, **self.server.of_choice}]}
        body = json.dumps(answer if status == 200 else {"error": {"message": "not now"}}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


def chatting(converse: Callable[[dict[str, Any]], dict[str, Any]]) -> AbstractContextManager[Endpoint]:
    """Return an endpoint that answers a request with a message, while it runs."""
    return answering(str, converse)


@contextmanager
def answering(
    answer: Callable[[str], str], converse: Callable[[dict[str, Any]], dict[str, Any]] | None = None
) -> Iterator[Endpoint]:
    """Yield the endpoint while it runs."""
    server = Endpoint(answer, converse)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def worded(prompt: str) -> str:
    """Answer the prompts of `[goals] ask` by one rule: the tools are the name, the sentence lists the slots."""
    tools, slots = (next(line for line in prompt.splitlines() if line.startswith(which)).split(": ", 1)[1]
                    for which in ("tools that serve it", "slots, what"))
    told = "" if slots == "none" else f" {slots}"
    return json.dumps({"name": f"Help to {tools}"[:60], "sentence": f"Help to {tools}{told}."})
