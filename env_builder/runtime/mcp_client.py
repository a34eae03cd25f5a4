"""A small MCP client: requests to a server over stdio or streamable HTTP (modelcontextprotocol.io, revision 2025-11-25).

In: an address or a command. Out: results of requests. Sees: results and errors of the requests that it makes. Does not see:
what a server asks or tells of its own accord; notifications are passed over.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

VERSION = "2025-11-25"
_ACCEPT = "application/json, text/event-stream"


class Connection(Protocol):
    """An initialized connection."""

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result; OSError where the server refuses or is gone."""


def connect(where: str, timeout_s: float) -> Connection:
    """Shake hands with the server at an address, or with the one that a command starts."""
    carrier = _Http(where, timeout_s) if where.startswith(("http://", "https://")) else _Process(where)
    carrier.request("initialize", {
        "protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "traceroom", "version": "1"}})
    carrier.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    return carrier


def _result(messages: Iterable[dict[str, Any]], number: int, where: str) -> dict[str, Any]:
    for message in messages:
        if message.get("id") != number:
            continue
        if "error" in message:
            raise OSError(f"the MCP server {where} refuses: {message['error'].get('message')}")
        result: dict[str, Any] = message["result"]
        return result
    raise OSError(f"the MCP server {where} ended without an answer")


class _Process:
    """A server that a command starts, one message a line; it ends with this process."""

    def __init__(self, command: str) -> None:
        self._where = command
        self._n_sent = 0
        self._process = subprocess.Popen(
            shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def __del__(self) -> None:
        if hasattr(self, "_process"):
            self._process.kill()
            self._process.communicate()

    def send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._n_sent += 1
        self.send({"jsonrpc": "2.0", "id": self._n_sent, "method": method, "params": params})
        assert self._process.stdout is not None
        return _result(map(json.loads, self._process.stdout), self._n_sent, self._where)


class _Http:
    """A server at an address: each message is a POST, answered with JSON or a stream of events."""

    def __init__(self, address: str, timeout_s: float) -> None:
        self._where = address
        self._timeout_s = timeout_s
        self._n_sent = 0
        self._headers = {"Content-Type": "application/json", "Accept": _ACCEPT}

    def send(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        request = urllib.request.Request(self._where, json.dumps(message).encode(), self._headers)
        with urllib.request.urlopen(request, timeout=self._timeout_s) as answer:
            session = answer.headers.get("Mcp-Session-Id")
            if session:
                self._headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": VERSION}
            text = answer.read().decode()
            streamed = answer.headers.get("Content-Type", "").startswith("text/event-stream")
        return list(_events(text)) if streamed else [json.loads(text)] if text.strip() else []

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._n_sent += 1
        sent = {"jsonrpc": "2.0", "id": self._n_sent, "method": method, "params": params}
        try:
            return _result(self.send(sent), self._n_sent, self._where)
        except urllib.error.HTTPError as refused:
            raise OSError(f"the MCP server {self._where} refuses {method} with status {refused.code}") from refused


def _events(text: str) -> Iterator[dict[str, Any]]:
    """Messages of a stream of server-sent events."""
    for event in text.replace("\r\n", "\n").split("\n\n"):
        data = "\n".join(line[5:].lstrip() for line in event.split("\n") if line.startswith("data:"))
        if data:
            yield json.loads(data)
