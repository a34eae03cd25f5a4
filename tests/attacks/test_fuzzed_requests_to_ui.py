"""Fuzzed requests to the browser's server: no crash and no 5xx, with and without its token."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlsplit

import pytest

from pipelines.browser.exports import FORMATS, LISTS
from pipelines.browser.pages import PAGES
from tests.attacks.fuzz import Fuzz
from tests.attacks.report import Report, counted
from tests.attacks.requests import METHODS, FuzzedRequest, RawClient, Tally, fuzzed_headers, header_text, path_text
from tests.attacks.servers import HttpClient, Server, command
from tests.command_line import environ
from tests.conftest import ROOT

REQUESTS = 100_000
TOKEN = "a-token-that-somebody-chose"
WRITING = ("/correct", "/check", "/review", "/enter")
FIELDS = ("id", "kind", "value", "why", "by", "back", "form_token", "check", "do", "parameters", "description", "weight",
          "session", "outcome", "confidence", "token")
FORM = b"application/x-www-form-urlencoded"
LOG = ROOT / "tests/logs/lamp_shop/logs/2026-03-02.jsonl"


def run(folder: Path) -> Path:
    """Make a small run to browse; return its folder."""
    (folder / "logs").mkdir(parents=True)
    (folder / "logs" / LOG.name).write_bytes(LOG.read_bytes())
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pipelines", "run", "--no-image", str(folder / "logs"), "--out", str(folder / "out")],
        cwd="/", env=environ(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "out"


def links(server: Server) -> list[str]:
    """Return the addresses that pages link to, two steps deep."""
    with HttpClient(server) as client:
        pages = list(PAGES)
        for page in list(pages):
            text = client.send("GET", page).body.decode()
            pages += [each.replace("&amp;", "&") for each in re.findall(r'href="(/[^"#]*)', text)]
        return sorted(set(pages))


def fuzzed_query(fuzz: Fuzz, address: str) -> bytes:
    """Return an address with some of its query replaced."""
    url = urlsplit(address)
    fields = parse_qsl(url.query)
    names = [name for name, _ in fields] or ["id"]
    if fuzz.random() < 0.7:
        fields += [(fuzz.choice((*names, "id", "after", "from", "words", "order", "outcome", "service")), fuzz.text())]
    if fuzz.random() < 0.3 and fields:
        fields[fuzz.randrange(len(fields))] = (fuzz.choice(names), fuzz.text())
    query = "&".join(f"{quote(name)}={quote(value.encode('utf-8', 'surrogatepass'))}" for name, value in fields)
    return f"{url.path}?{query}".encode()


def request(fuzz: Fuzz, addresses: list[str], server: Server, cookie: bytes, form_token: str) -> FuzzedRequest:
    """Return a request: a page, an exported list, or a form."""
    usual = {b"Accept": b"text/html"}
    if fuzz.random() < 0.5:
        usual[b"Cookie"] = cookie
    if fuzz.random() < 0.35:
        usual |= {b"Origin": f"http://{server.host}:{server.port}".encode(), b"Content-Type": FORM, b"Cookie": cookie}
        query = dict(parse_qsl(urlsplit(fuzz.choice(addresses)).query))
        kind = fuzz.choice(("outcome", "effect", "check", "family", "session"))
        likely = {"form_token": form_token, "back": "/", "kind": kind,
                  "id": query.get("id"), "check": query.get("check"), "do": fuzz.choice(("try", "keep", "withdraw")),
                  "value": fuzz.choice(("success", "failure", "read", "write", "left out", None)), "by": "somebody"}
        fields = {name: (fuzz.random() < 0.8 and likely.get(name)) or fuzz.text() for name in FIELDS if fuzz.random() < 0.85}
        body = "&".join(f"{name}={quote(value.encode('utf-8', 'surrogatepass'))}" for name, value in fields.items()).encode()
        return FuzzedRequest(b"POST", fuzz.choice(WRITING).encode(), fuzzed_headers(fuzz, usual), body)
    path = fuzz.choice(addresses).encode() if fuzz.random() < 0.2 else fuzzed_query(fuzz, fuzz.choice(addresses))
    if fuzz.random() < 0.05:
        path = b"/" + path_text(fuzz)
    method = b"GET" if fuzz.random() < 0.9 else fuzz.choice(METHODS)
    return FuzzedRequest(method, path, (*fuzzed_headers(fuzz, usual), *(
        ((b"X-" + b"y", header_text(fuzz)),) if fuzz.random() < 0.05 else ())))


def attack(folder: Path, share: float, out: Path | None = None) -> Report:
    """Fuzz one server on a small run."""
    fuzz, tally = Fuzz(5), Tally()
    with command("ui", "--out", out or run(folder), TRACEROOM_UI_TOKEN=TOKEN) as server:
        addresses = links(server) + [f"{path}.{ending}" for path in LISTS for ending in FORMATS]
        with HttpClient(server) as honest:
            cookie = honest.send("GET", f"/enter?token={TOKEN}").headers["set-cookie"].split(";")[0]
            session = next(each for each in addresses if each.startswith("/session?"))
            page = honest.send("GET", session, Cookie=cookie).body.decode()
            form_token = re.findall(r'name="form_token" value="([^"]*)"', page)[0]
        client = RawClient(server)
        for _ in range(counted(REQUESTS, share, 500)):
            tally.send(client, request(fuzz, addresses, server, cookie.encode(), form_token), server)
        client.close()
    if not all(tally.statuses[status] for status in (200, 400, 403, 404)):
        tally.note(f"the requests are too much alike: {tally.statuses}")
    return Report(tally.n_sent, tuple(tally.examples.values()), {"fuzzed_requests_bad": tally.n_bad})


@pytest.mark.slow
def test_fuzzed_requests_do_not_harm_the_browser(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
