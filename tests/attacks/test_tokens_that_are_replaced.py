"""Tokens that are added and withdrawn while a server runs, and files of tokens that are broken: only a whole file counts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipelines.serving.access import ServerAccess
from pipelines.serving.tokens import ClientTokens
from tests.attacks.report import Report
from tests.attacks.servers import HttpClient, Server, command
from tests.rooms import TASK, write_room
from warehouse.errors import InputError

FIRST, SECOND, THIRD = (f"the-token-of-client-number-{number}" for number in range(3))
BROKEN = {"nothing": b"", "blanks": b"\n  \n", "a short token": f"{THIRD}\nshort\n".encode(), "no text": b"\xff\xfe" * 20}


def replace(file: Path, content: bytes) -> None:
    """Put another file in its place, as a mounted secret is replaced."""
    draft = file.with_suffix(".draft")
    draft.write_bytes(content)
    draft.replace(file)


def status(server: Server, token: str, session: str = "") -> int:
    """Return the status that a call under a token gets, in a session or in a new one."""
    with HttpClient(server, Authorization=f"Bearer {token}") as client:
        if session:
            client.headers["Mcp-Session-Id"] = session
            return client.call("read_sign", '{"at": "gate"}').status
        return client.send("POST", "/mcp", '{"jsonrpc": "2.0", "id": 1, "method": "ping"}').status


def attack(folder: Path, share: float) -> Report:
    """Replace the tokens of a server, enter a session whose token was withdrawn, and break the file in every way."""
    file, problems = folder / "tokens", []
    file.write_text(f"{FIRST}\n{SECOND}\n")

    def expect(what: str, found: int, wanted: set[int]) -> None:
        if found not in wanted:
            problems.append(f"{what}: {found}")

    with command("serve", write_room(folder / "hall"), "--task", TASK, TRACEROOM_SERVE_TOKENS_FILE=str(file)) as server:
        with HttpClient(server, Authorization=f"Bearer {FIRST}") as client:
            session = client.open_session()
        expect("a token that is not there yet", status(server, THIRD), {401})
        replace(file, f"{SECOND}\n{THIRD}\n".encode())
        expect("a token that was withdrawn, in its session", status(server, FIRST, session), {401})
        expect("the session of a withdrawn token, under another one", status(server, SECOND, session), {404})
        expect("the session of a withdrawn token, under a new one", status(server, THIRD, session), {404})
        for what, content in BROKEN.items():
            replace(file, content)
            expect(f"a new token, after {what}", status(server, THIRD), {200, 400, 404})
            expect(f"a withdrawn token, after {what}", status(server, FIRST), {401})
            expect(f"no token, after {what}", status(server, ""), {401})
        file.unlink()
        expect("a token, without the file", status(server, THIRD), {200, 400, 404})
        expect("no token, without the file", status(server, ""), {401})
        replace(file, f"{FIRST}\n".encode())
        expect("a token that is there again, in its session", status(server, FIRST, session), {200})
        expect("a token that is gone", status(server, THIRD), {401})
    return Report(18, tuple(problems))


def test_only_a_whole_file_replaces_tokens(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()


def test_a_server_with_a_broken_file_of_tokens_does_not_start(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    with pytest.raises(InputError, match="cannot be read"):
        ClientTokens(file=str(file))
    for content, message in ((b"", "no token"), (b"short", "5 characters"), (b"\xff\xfe\xff", "no text")):
        file.write_bytes(content)
        with pytest.raises(InputError, match=message):
            ClientTokens(file=str(file))


def test_another_process_has_the_same_rules(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"{FIRST}\n")
    for tokens in (ClientTokens([FIRST]), ClientTokens(file=str(file)), ClientTokens()):
        given = ServerAccess.of("192.0.2.1", ["rooms.example"], tokens)
        taken = ServerAccess.of_settings(given.settings())
        assert (taken.hosts, taken.tokens.values, taken.tokens.file, taken.exposed) == (
            given.hosts, given.tokens.values, given.tokens.file, given.exposed)
    os.utime(file, (1, 1))
    file.write_text(f"{SECOND}\n")
    access = ServerAccess.of("127.0.0.1", (), ClientTokens(file=str(file)))
    assert access.client({b"authorization": f"Bearer {SECOND}".encode()}, ("127.0.0.1", 1)) == "token 0"
