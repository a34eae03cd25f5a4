"""Requests hidden in others, by lengths and encodings that two servers read in two ways: none is carried out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.halls import GROUP, hall, rpc, spoken
from tests.attacks.report import Report


def attack(folder: Path, share: float) -> Report:
    """Hide a call that would change a victim's episode behind a request whose end is told in two ways."""
    server, problems = hall().server, []
    with hall().agent() as victim:
        session = victim.headers["Mcp-Session-Id"]
        body = rpc("tools/call", {"name": "open_door", "arguments": {"door": "7"}})
        common = f"Host: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\n"
        hidden = f"POST /mcp HTTP/1.1\r\n{common}Mcp-Session-Id: {session}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        n = len(hidden)
        chunked = f"0\r\n\r\n{hidden}"
        forms = {
            "length before chunks": f"Content-Length: {len(chunked)}\r\nTransfer-Encoding: chunked\r\n\r\n{chunked}",
            "chunks before length": f"Transfer-Encoding: chunked\r\nContent-Length: {len(chunked)}\r\n\r\n{chunked}",
            "two lengths": f"Content-Length: {n}\r\nContent-Length: 0\r\n\r\n{hidden}",
            "two lengths in one": f"Content-Length: {n}, 0\r\n\r\n{hidden}",
            "a signed length": f"Content-Length: +0\r\n\r\n{hidden}",
            "a negative length": f"Content-Length: -1\r\n\r\n{hidden}",
            "a length in hex": f"Content-Length: 0x0\r\n\r\n{hidden}",
            "a length with a blank": f"Content-Length : 0\r\n\r\n{hidden}",
            "a folded line": f"X: y\r\n Content-Length: {n}\r\n\r\n{hidden}",
            "another coding": f"Transfer-Encoding: xchunked\r\n\r\n{chunked}",
            "two codings": "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n"
                           f"Content-Length: {len(chunked)}\r\n\r\n{chunked}",
            "a tab": f"Transfer-Encoding:\tchunked\r\nContent-Length: {len(chunked)}\r\n\r\n{chunked}",
            "a zero in the name": f"Content\x00-Length: {n}\r\nContent-Length: 0\r\n\r\n{hidden}",
            "an extension": f'Transfer-Encoding: chunked\r\n\r\n0;a="\n"\r\n\r\n{hidden}',
        }
        for name, form in forms.items():
            before = hall().steps(session)
            answer = spoken(server, f"POST /mcp HTTP/1.1\r\n{common}{form}".encode("latin-1"), 0.4)
            if hall().steps(session) != before and not _is_pipelined(form):
                problems.append(f"{name}: the hidden call was carried out: {answer[:300]!r}")
    return Report(len(forms), (*problems, *hall().trouble()))


def _is_pipelined(form: str) -> bool:
    """Return whether the standard ends the first request before the hidden one: it is one of two in a row."""
    headers = form.partition("\r\n\r\n")[0].lower().split("\r\n")
    has_chunks = headers == ["transfer-encoding: chunked"]
    return has_chunks and '"\n"' not in form


@pytest.mark.xdist_group(GROUP)
def test_no_request_is_hidden_in_another(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
