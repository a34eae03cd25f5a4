"""Cookies and tokens of the browser that somebody made up: none opens it, and its own cookie is for this server alone."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.attacks.hostile_run import GROUP, hostile_run
from tests.attacks.pages import on
from tests.attacks.report import Report
from tests.pipelines.test_browser import TOKEN, Server


def attack(folder: Path, share: float) -> Report:
    """Guess tokens and cookies at a server that demands them for reading too."""
    server, problems = Server(hostile_run(), exposed=True), []
    guesses = ["", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), TOKEN.replace(" ", "+"), "\x00" + TOKEN, "*", "null", TOKEN * 1_000]
    for guess in guesses:
        status, headers, _ = server.ask(f"/enter?token={quote(guess)}&back=/sessions")
        problems += [f"{guess[:20]!r} opens it"] if "set-cookie" in headers else []
    nonce = "a" * 24
    key = hashlib.sha256(TOKEN.upper().encode()).digest()
    made = [f"{nonce}.{hmac.new(key, f'session{chr(0)}{nonce}'.encode(), hashlib.sha256).hexdigest()}", f"{nonce}.", ".", nonce,
            f".{hashlib.sha256(b'').hexdigest()}", f"{nonce}.{'0' * 64}", "",
            f"{nonce}.{hashlib.sha256(nonce.encode()).hexdigest()}"]
    cookie = server.enter() if False else server.ask(f"/enter?token={quote(TOKEN)}")[1]["set-cookie"]
    name, _, value = cookie.split(";")[0].partition("=")
    made += [value[:-1], value.upper(), value.replace(".", ".."), f"x{value}", value[::-1]]
    for each in made:
        status, _, text = server.ask("/sessions", Cookie=f"{name}={each}")
        problems += [f"the cookie {each[:40]!r} opens it: {status}"] if status == 200 and "<h1" in text else []
    flags = {part.strip().lower() for part in cookie.split(";")[1:]}
    problems += [f"the cookie lacks {flag}" for flag in ("httponly", "samesite=strict") if flag not in flags]
    problems += ["the cookie is for other machines"] if any(flag.startswith("domain") for flag in flags) else []
    problems += [] if server.ask("/sessions", Cookie=f"{name}={value}")[0] == 200 else ["its own cookie does not open it"]
    for path in ("/sessions.csv", "/report", "/text?id=x", "/sessions.json", "/../sessions", "//sessions",
        "/enter/../sessions", "/style.css/../sessions"):
        status, _, text = server.ask(path)
        problems += [f"{path} is read without a cookie: {status}"] if status == 200 else []
    server.stop()
    other = on(hostile_run())
    other.stop()
    return Report(len(guesses) + len(made) + 8, tuple(problems))


@pytest.mark.slow
@pytest.mark.xdist_group(GROUP)
def test_no_cookie_is_made_up(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
