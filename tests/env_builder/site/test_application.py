"""The company's own application behind the same port: the same play ends alike there and in the induced site."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from env_builder.runtime.apps import Start
from env_builder.runtime.apps.site import SiteApp, load
from env_builder.runtime.site.port import PortRequest
from env_builder.site.application import Application
from tests.apps import CASES, START
from tests.env_builder.site.cards import CardSite
from warehouse.errors import Unavailable

ROOT = Path(__file__).resolve().parents[3]
ORIGIN = "https://cards.example"


@pytest.fixture
def site() -> SiteApp:
    source = CASES["site"].source
    return load(source.content, {"name": "site", **source.options})


@pytest.fixture
def application(site: SiteApp, tmp_path: Path) -> Application:
    cards = CardSite(3).cards
    for number, card in cards.items():
        card.update(title=f"Torch {number}", level="high", comments=["lit"])
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "cards.json").write_text(json.dumps(cards))
    logins = {"ivo@cards.example": (site.access.passwords["ivo@cards.example"], "sesame")}
    command = [sys.executable, "-m", "tests.env_builder.site.cards_application", "{port}", "{folder}"]
    variables = {"PYTHONPATH": str(ROOT), "HOME": os.environ.get("HOME", "")}
    return Application(command, tmp_path / "data", ORIGIN, logins, variables)


def test_the_same_play_ends_alike_in_the_application(site: SiteApp, application: Application) -> None:
    case, ends = CASES["site"], []
    for undone in (False, True):
        steps = (*case.change, *(case.undo if undone else ()))
        state = site.reset(Start(START, frozenset(["s1"])))
        assert not any(state.call(tool, arguments).is_error for tool, arguments in steps)
        with application.started() as running:
            site.application = running.port
            real = site.reset(Start(START, frozenset(["s1"])))
            results = [real.call(tool, arguments) for tool, arguments in steps]
            site.application = None
        assert not any(result.is_error for result in results)
        assert {result.tier for result in results} == {"real", "derived"}
        assert real.difference() == state.difference()
        ends.append(real.difference()["documents"])
    assert list(ends[0]) == [case.entity] and not ends[1]


def test_each_episode_has_data_of_its_own(application: Application) -> None:
    edit = (("work", "edit"), ("title", "Lantern"), ("level", "low"))
    login = (("who", "ivo@cards.example"), ("password", application.logins["ivo@cards.example"][0]))
    for _ in range(2):
        with application.started() as running:
            assert running.port.ask(PortRequest("POST", "/login/", login)).location == "/cards/"
            page = running.port.ask(PortRequest("GET", "/cards/101/")).page
            assert page is not None and any("Torch 101" in each.children for each in page.elements())
            answer = running.port.ask(PortRequest("POST", "/cards/101/", edit))
            assert (answer.status, answer.tier, answer.location) == (302, "real", "/cards/101/")
            file = running.port.ask(PortRequest("GET", "/cards/101/sheet")).file
            assert file is not None and (file.name, file.content) == ("sheet-101.pdf", b"%PDF Lantern: 101.50 in all")
    assert "Torch 101" in (application.data / "cards.json").read_text(), "what is copied stays as it is"


def test_an_application_that_does_not_start_says_why(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('no data here'); raise SystemExit(1)"]
    with pytest.raises(Unavailable, match="no data here"):
        Application(command, tmp_path, ORIGIN).started()


_SERVER = """
import http.server, pathlib, socket, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/out":
            try:
                socket.create_connection(("1.1.1.1", 53), 2)
                text = "reached"
            except OSError:
                text = "no way out"
        else:
            path = pathlib.Path(sys.argv[1], "text")
            text = path.read_text()
            path.write_text("changed")
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(f"<p>{text}</p>".encode())
http.server.ThreadingHTTPServer(("0.0.0.0", int(sys.argv[2])), Handler).serve_forever()
"""


@pytest.mark.docker
def test_an_image_runs_without_a_way_out_on_data_of_its_own(base_image: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("as of the start")
    (tmp_path / "server.py").write_text(_SERVER)
    application = Application(["python3", "{folder}/server.py", "{folder}", "{port}"], tmp_path, ORIGIN, image=base_image)
    for _ in range(2):
        with application.started() as running:
            shown = [running.port.ask(PortRequest("GET", url)).page for url in ("/", "/out", "/")]
            texts = [next("".join(map(str, each.children)) for each in page.elements() if each.tag == "p")
                     for page in shown if page is not None]
        assert texts == ["as of the start", "no way out", "changed"]
    assert (tmp_path / "text").read_text() == "as of the start"
