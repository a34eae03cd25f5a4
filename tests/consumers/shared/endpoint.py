"""A loopback server of OpenAI's chat completions whose models take known turns: by the model's name, one turn a request."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Move = tuple[str, list[dict[str, Any]]]
Row = dict[str, Any]


class Endpoint:
    """Serves until the program ends. Which turn is due is read off the request: how often the assistant has spoken."""

    def __init__(self) -> None:
        self.requests: list[Row] = []
        """All bodies, in order."""
        self._scripts: dict[str, tuple[int, list[Move]]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"endpoint": self}))
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def teach(self, model: str, opening: list[Row], moves: list[Move]) -> str:
        """Give a model its turns after an opening; return its name."""
        self._scripts[model] = (_n_spoken(opening), moves)
        return model

    def turn(self, body: Row) -> Row:
        """Return the message that is due; KeyError, IndexError where there is none."""
        self.requests.append(body)
        n_before, moves = self._scripts[body["model"]]
        number = _n_spoken(body["messages"]) - n_before
        words, calls = moves[number]
        made = [{"id": f"call_{number}_{place}", "type": "function", "index": place, "function": {
            "name": call["tool"], "arguments": json.dumps(call["arguments"])}} for place, call in enumerate(calls)]
        return {"role": "assistant", "content": words, **({"tool_calls": made} if made else {})}


class _Handler(BaseHTTPRequestHandler):
    endpoint: Endpoint
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            message = self.endpoint.turn(body)
        except LookupError as error:
            return self._send(400, "application/json", json.dumps({"error": {"message": f"no turn is due: {error!r}"}}))
        reason = "tool_calls" if "tool_calls" in message else "stop"
        shared = {"id": "chatcmpl-1", "created": 0, "model": body["model"]}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if not body.get("stream"):
            whole = {**shared, "object": "chat.completion", "usage": usage, "choices": [
                {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}]}
            return self._send(200, "application/json", json.dumps(whole))
        chunks: list[Row] = [{"choices": [{"index": 0, "delta": message, "finish_reason": None}]},
                             {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}, {"choices": [], "usage": usage}]
        lines = [json.dumps({**shared, "object": "chat.completion.chunk", **chunk}) for chunk in chunks]
        return self._send(200, "text/event-stream", "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]))

    def _send(self, status: int, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def _n_spoken(messages: list[Row]) -> int:
    return sum(message["role"] == "assistant" for message in messages)
