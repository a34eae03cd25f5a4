"""The browser over HTTP: its pages on a real run, who may write, and log content that would be a script."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode

import polars as pl
import pytest
import uvicorn

from extractors.formats.correction import wrong_with
from pipelines.browser.app import PAGES, application
from pipelines.browser.guard import POLICY, AccessGuard
from pipelines.browser.shown import visible
from pipelines.serving.listening import listen
from warehouse import records
from warehouse.catalogs import published_path
from warehouse.store import Store

pytestmark = pytest.mark.xdist_group("browser")
TOKEN = "a token that somebody chose"
HOSTILE = ["<script>alert(1)</script>", "\"><img src=x onerror=alert(2)>", "{{ 7*7 }}", "javascript:alert(3)", "\u202egnp.exe",
           "</textarea></title><svg onload=alert(4)>", "\x1b[31mred\x07", "'--", "https://evil.example/"]
Answer = tuple[int, dict[str, str], str]


class Server:
    """The browser on a folder, on a port of its own."""

    def __init__(self, out: Path, exposed: bool = False) -> None:
        listening = listen("127.0.0.1", 0)
        self.port = int(listening.getsockname()[1])
        config = uvicorn.Config(application(out, AccessGuard(TOKEN, exposed)), log_level="error", lifespan="on")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listening]}, daemon=True)
        self._thread.start()

    def ask(self, path: str, form: dict[str, str] | None = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        if form is not None:
            told = {"Origin": f"http://127.0.0.1:{self.port}", "Content-Type": "application/x-www-form-urlencoded"} | told
        connection.request("GET" if form is None else "POST", path, urlencode(form) if form is not None else None, told)
        answer = connection.getresponse()
        text = answer.read().decode("utf-8")
        connection.close()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, text

    def enter(self) -> str:
        """Return the cookie of a session."""
        status, headers, _ = self.ask(f"/enter?{urlencode({'token': TOKEN, 'back': '/sessions'})}")
        assert (status, headers["location"]) == (303, "/sessions") and "HttpOnly" in headers["set-cookie"]
        assert "samesite=strict" in headers["set-cookie"].lower()
        return headers["set-cookie"].split(";")[0]

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(60)


@pytest.fixture(scope="module")
def out(run_once: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser") / "out"
    shutil.copytree(run_once[0], folder)
    return folder


@pytest.fixture(scope="module")
def server(out: Path) -> Iterator[Server]:
    started = Server(out)
    yield started
    started.stop()


def known(out: Path, sql: str) -> str:
    with Store.published(out / "warehouse.duckdb") as store:
        return str(store.read(sql).item(0, 0))


def check_of(out: Path, task: str) -> str:
    """Id of a gate of the task's rubric."""
    checks = json.loads(known(out, f"select checks from mart.rubrics where task_id = '{task}'"))
    return str(next(check["check_id"] for check in checks if check["role"] == "gate"))


def task_of(out: Path) -> str:
    return known(out, "select subject from mart.decisions where stage = 'verify' and kept order by all")


def addresses(out: Path) -> list[str]:
    """One of each kind of page."""
    task = task_of(out)
    session = known(out, "select session_id from core.sessions order by all")
    return ["/", "/families", "/sessions", "/tasks", "/rollouts", "/episodes", "/policies", "/glossary", "/progress",
            "/unknowns", "/rejected", "/corrections", "/reviews", "/transfer",
            "/reviews?sample=3&seed=1", "/enter",
            f"/family?id={known(out, 'select family from mart.families order by all')}", f"/session?id={session}",
            f"/sessions?outcome=succeeded&words={session[:4]}&sort=longest+first&since=2000-01-01",
            f"/task?id={task}", f"/replay?id={task}&step=1", f"/replay?id={task}",
            f"/compare?id={task}&with=solution",
            f"/check?id={task}&check={check_of(out, task)}", f"/check?id={task}&kind=order",
            f"/environment?id={known(out, 'select environment from mart.environments order by all')}",
            f"/text?id={known(out, 'select turn_id from core.turns order by all')}"]


def test_every_page_answers_under_a_strict_policy_and_its_links_lead_somewhere(server: Server, out: Path) -> None:
    asked = addresses(out)
    not_here = {"/event", "/report", "/company", "/work"}   # the run read no exports of a company
    assert {path.split("?")[0] for path in asked} >= set(PAGES) - not_here
    links = set()
    for path in asked:
        status, headers, text = server.ask(path)
        assert status == 200, (path, text)
        assert headers["x-content-type-options"] == "nosniff" and "default-src 'none'" in headers["content-security-policy"]
        if headers["content-type"].startswith("text/html"):
            assert headers["content-security-policy"] == POLICY and "<script" not in text and " style=" not in text
            links |= set(re.findall(r'href="(/[^"#]*)', text))
    status, headers, text = server.ask("/report")
    assert status == 200 and "sandbox allow-scripts" in headers["content-security-policy"] and "sha256-" in headers[
        "content-security-policy"] and "default-src 'none'" in headers["content-security-policy"] and "<h1" in text
    for path in sorted(links)[::7]:
        assert server.ask(path.replace("&amp;", "&"))[0] in (200, 303), path
    assert [server.ask(path)[0] for path in ("/task?id=x", "/task", "/sessions?after=zz", "/session?id=x&from=1",
                                             "/check?id=x", "/check", f"/check?id={task_of(out)}&check=x",
                                             f"/check?id={task_of(out)}&kind=x")] == [
        404, 400, 400, 404, 404, 400, 404, 404]


def test_nobody_writes_without_token_form_and_origin(server: Server, out: Path) -> None:
    session = known(out, "select session_id from core.sessions order by all")
    cookie, page = server.enter(), f"/session?id={session}"
    assert 'action="/correct"' not in server.ask(page)[2] and 'action="/correct"' in server.ask(page, Cookie=cookie)[2]
    found = re.search(r'name="form_token" value="(\w+)"', server.ask(page, Cookie=cookie)[2])
    assert found
    form = {"form_token": found[1], "kind": "outcome", "id": session, "value": "bad", "by": "Ada", "why": "<b>no</b>",
            "back": "//evil.example/"}
    foreign = {"Origin": "http://evil.example"}
    for wrong, headers in [
            (form, {}), (form, {"Cookie": "traceroom=made.up"}), ({**form, "form_token": "0" * 64}, {"Cookie": cookie}),
            ({**form, "form_token": found[1]}, {"Cookie": server.enter()}), (form, {"Cookie": cookie, **foreign}),
            (form, {"Cookie": cookie, "Origin": "null"})]:
        assert server.ask("/correct", wrong, **headers)[0] == 403
    assert server.ask("/correct", form, Cookie=cookie, Content_Type="text/plain")[0] == 415
    assert server.ask("/correct", {**form, "why": "x" * 70_000}, Cookie=cookie)[0] == 413
    assert server.ask("/correct", {**form, "why": ""}, Cookie=cookie)[0] == 400
    assert server.ask("/correct", {**form, "value": "splendid"}, Cookie=cookie)[0] == 400
    assert not list((out / "corrections").glob("*.jsonl"))
    status, headers, _ = server.ask("/correct", form, Cookie=cookie)
    assert (status, headers["location"]) == (303, "/#corrected")
    [line] = (out / "corrections" / "corrections.jsonl").read_text("utf-8").splitlines()
    told = json.loads(line)
    assert wrong_with(told) is None and (told["by"], told["value"], told["subject"]["id"]) == ("Ada", "bad", session)
    text = server.ask(page)[2]
    assert "waits for the next run" in text and "&lt;b&gt;no&lt;/b&gt;" in text
    assert server.ask("/enter", {"token": "guessed", "back": "/"})[0] == 403


def test_another_name_for_this_machine_is_answered_nothing(server: Server) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "0.0.0.0", "", "["):
        assert server.ask("/sessions", Host=host)[0] == 421, host
    for host in ("localhost", "127.0.0.1:1", "[::1]:9", "localhost."):
        assert server.ask("/sessions", Host=host)[0] == 200, host


def test_a_server_for_others_shows_nothing_without_its_token(out: Path) -> None:
    exposed = Server(out, exposed=True)
    try:
        for path in [*addresses(out)[:4], "/report", "/nothing"]:
            status, headers, text = exposed.ask(path, Host="desk.example")
            assert (status, headers["location"], text) == (303, "/enter", "")
        assert exposed.ask("/sessions", Host="desk.example", Cookie=exposed.enter())[0] == 200
        assert exposed.ask("/correct", {}, Host="desk.example", Origin="http://desk.example")[0] == 401
    finally:
        exposed.stop()


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a published warehouse of hostile sessions, as many as `n`."""
    return warehouse_of(tmp_path_factory.mktemp("many"), 1000)


def warehouse_of(folder: Path, n: int) -> Path:
    """Return a folder with a warehouse of `n` sessions of ten turns, whose words are those of `HOSTILE`."""
    begin = datetime(2026, 3, 2, tzinfo=UTC)
    at = [begin + timedelta(seconds=37 * (i % (n // 2))) for i in range(n)]
    ids = [f"s{i:07}{HOSTILE[i % len(HOSTILE)] if i < 20 else ''}" for i in range(n)]
    bad = [HOSTILE[i % len(HOSTILE)] for i in range(n)]
    families = [f"f{i % 300}" for i in range(n)]

    def table(record: type[records.Record], **columns: object) -> pl.DataFrame:
        schema = records.frame_schema(record)
        held = pl.DataFrame({name: value for name, value in columns.items() if isinstance(value, list | pl.Series)})
        return held.with_columns(
            pl.lit(columns.get(name), kind).alias(name) for name, kind in schema.items() if name not in held.columns
        ).select(pl.col(name).cast(kind) for name, kind in schema.items())

    turn = list(range(10 * n))
    path = folder / "warehouse.duckdb"
    with Store.open(path) as store:
        store.append("core.sessions", table(
            records.Session, session_id=ids, started_at=at, source="main", service="desk", n_messages=8, n_calls=2,
            format=HOSTILE[0], other_session_ids=[[]] * n))
        store.append("core.turns", table(
            records.Turn, turn_id=[f"t{i}" for i in turn], session_id=[ids[i // 10] for i in turn],
            position=[i % 10 for i in turn], kind=["call" if i % 5 == 4 else "message" for i in turn], service="desk",
            role=[None if i % 5 == 4 else "user" for i in turn], content=[bad[i // 10] for i in turn], tool=HOSTILE[1],
            arguments="{}", happened_at=[at[i // 10] + timedelta(seconds=i % 10) for i in turn]))
        store.append("mart.outcomes", table(
            records.Outcome, session_id=ids, probability=[(i % 100) / 100 for i in range(n)], is_contested=False, model="",
            signals=json.dumps([{"name": HOSTILE[0], "vote": 1, "description": HOSTILE[1], "evidence": [HOSTILE[3]]}])))
        store.append("mart.goals", table(
            records.Goal, goal_id=[f"g{i}" for i in range(n)], session_id=ids, service="desk", place=0, begins=0, ends=10,
            kind=families, family=families, asks="", goal=bad, slots="{}"))
        store.append("mart.names", table(
            records.FamilyName, service="desk", family=[f"f{i}" for i in range(300)], kinds=[[f"f{i}"] for i in range(300)],
            name=HOSTILE[5], sentence=HOSTILE[0]))
        store.append("mart.tasks", table(
            records.Task, task_id=ids, service="desk", family=families, slots=json.dumps({HOSTILE[0]: HOSTILE[1]}), goal=bad,
            session_ids=[[name] for name in ids], succeeded_session_ids=[[name] for name in ids], split="train",
            call_sequences="[]", late_arguments="[]", reported_facts="[]", signature="[]"))
        store.publish()
    return folder


def test_what_a_log_holds_is_text_wherever_it_stands(many: Path) -> None:
    server = Server(many)
    try:
        cookie = server.enter()
        with Store.published(many / "warehouse.duckdb") as store:
            ids = store.read("select session_id from core.sessions order by all limit 20")["session_id"].to_list()
        paths = ["/", "/families", "/sessions", "/tasks", "/rejected", "/family?id=f1", *(
            f"/{page}?{urlencode({'id': name})}" for name in ids[:9] for page in ("session", "task"))]
        paths += [f"/{page}?{urlencode({key: text})}" for text in HOSTILE for page, key in (
            ("sessions", "words"), ("families", "service"), ("task", "id"), ("enter", "back"))]
        for path in paths:
            status, _, text = server.ask(path, Cookie=cookie)
            assert status in (200, 400, 404), (path, status)
            assert "<script" not in text and "<img" not in text and "<svg" not in text and "\u202e" not in text, path
            assert "\x1b" not in text and 'href="javascript:' not in text and 'href="http' not in text, path
            assert set(re.findall(r"\son\w+=", re.sub(r'"[^"]*"', "", re.sub(r">[^<]*<", "><", text)))) == set(), path
        assert visible("\u202ea\x1b\ud800") == "⟦U+202E⟧a⟦U+001B⟧⟦U+D800⟧"
        assert server.ask(f"/session?{urlencode({'id': ids[4]})}")[2].count("⟦U+202E⟧") > 5
        assert server.ask("/text?id=t0")[1]["content-type"].startswith("text/plain")
    finally:
        server.stop()


def test_every_session_is_on_one_page_of_the_list(many: Path) -> None:
    server, seen, path = Server(many), list[str](), "/sessions?outcome=failed&sort=most+calls+first"
    try:
        while path:
            text = server.ask(path)[2]
            seen += re.findall(r'href="(/session\?id=[^"]+)"', text)
            after = re.search(r'rel="next" href="([^"]+)"', text)
            path = after[1].replace("&amp;", "&") if after else ""
    finally:
        server.stop()
    with Store.published(many / "warehouse.duckdb") as store:
        n = store.read("select count(*) from mart.outcomes where probability < 0.5").item()
    assert len(seen) == len(set(seen)) == n


def test_a_run_that_publishes_is_seen_at_once(many: Path, tmp_path: Path) -> None:
    shutil.copytree(many, tmp_path / "out")
    path, server = tmp_path / "out" / "warehouse.duckdb", Server(tmp_path / "out")
    try:
        assert ">1,000<" in server.ask("/")[2]
        with Store.open(path) as store:
            store.change("delete from core.sessions where session_id like 's00000%'")
            time.sleep(0.01)
            store.publish()
        assert published_path(path).is_file() and ">900<" in server.ask("/")[2]
    finally:
        server.stop()
