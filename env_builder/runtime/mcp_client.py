"""A small MCP client: requests to a server over stdio or streamable HTTP (modelcontextprotocol.io, revision 2025-11-25).

In: an address or a command. Out: results of requests. Sees: results and errors of the requests that it makes. Does not see:
requests and notifications of the server, which are skipped.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from typing import Any

VERSION = "2025-11-25"
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class McpError(OSError):
    """A request that the server answers with an error."""


class McpClient:
    """Numbers requests and finds their replies. `exchange` sends one message and gives the messages that come back."""

    def __init__(self, exchange: Callable[[dict[str, Any]], Iterable[dict[str, Any]]], name: str) -> None:
        self._exchange = exchange
        self._name = name
        self._n_sent = 0

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the result; McpError if the server answers with an error, OSError if it is gone."""
        self._n_sent += 1
        number = self._n_sent
        for reply in self._exchange({"jsonrpc": "2.0", "id": number, "method": method, "params": params}):
            if reply.get("id") == number:
                return result_of(reply, f"{self._name} rejects {method}")
        raise OSError(f"{self._name} ended without an answer")


def result_of(reply: dict[str, Any], rejection: str) -> dict[str, Any]:
    """Return a reply's result; McpError, which begins with `rejection`, if it is an error."""
    if "error" in reply:
        raise McpError(f"{rejection}: {reply['error'].get('message')}")
    result: dict[str, Any] = reply["result"]
    return result


def connect(address: str, timeout_s: float) -> McpClient:
    """Shake hands with the server at an address, or with the one that a command starts."""
    is_http = address.startswith(("http://", "https://"))
    server = _HttpServer(address, timeout_s) if is_http else _CommandServer(address)
    client = McpClient(server.exchange, f"the MCP server {address}")
    client.request("initialize", {
        "protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "traceroom", "version": "1"}})
    server.notify({"jsonrpc": "2.0", "method": "notifications/initialized"})
    return client


class _CommandServer:
    """A server that a command starts, one message a line; it ends with this process."""

    def __init__(self, command: str) -> None:
        self._process = subprocess.Popen(
            shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def __del__(self) -> None:
        if hasattr(self, "_process"):
            self._process.kill()
            self._process.communicate()

    def notify(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def exchange(self, message: dict[str, Any]) -> Iterable[dict[str, Any]]:
        self.notify(message)
        assert self._process.stdout is not None
        return map(json.loads, self._process.stdout)


class _HttpServer:
    """A server at an address: each message is a POST, answered with JSON or a stream of events."""

    def __init__(self, address: str, timeout_s: float) -> None:
        self._address = address
        self._timeout_s = timeout_s
        self._headers = dict(_HEADERS)

    def exchange(self, message: dict[str, Any]) -> Iterable[dict[str, Any]]:
        request = urllib.request.Request(self._address, json.dumps(message).encode(), self._headers)
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_s) as answer:
                session = answer.headers.get("Mcp-Session-Id")
                if session:
                    self._headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": VERSION}
                text = answer.read().decode()
                streamed = answer.headers.get("Content-Type", "").startswith("text/event-stream")
        except urllib.error.HTTPError as error:
            raise McpError(f"the MCP server {self._address} rejects {message['method']} with status {error.code}") from error
        return list(_events(text)) if streamed else [json.loads(text)] if text.strip() else []

    notify = exchange


def _events(text: str) -> Iterator[dict[str, Any]]:
    """Parse the messages of a stream of server-sent events."""
    for event in text.replace("\r\n", "\n").split("\n\n"):
        data = "\n".join(line[5:].lstrip() for line in event.split("\n") if line.startswith("data:"))
        if data:
            yield json.loads(data)
