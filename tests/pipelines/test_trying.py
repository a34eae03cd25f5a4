"""Trying a change of a rubric: in a real browser and from a file; what it says is what the next run does; who may try."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from env_builder.audit.plays import GradedPlay
from env_builder.audit.trial import changes_between
from env_builder.runtime.checks import kind_of, kinds, prepared
from pipelines.browser.editing import describe, skeleton
from tests.browser import PHONE, browser, new_page, violations  # noqa: F401
from tests.command_line import called, process
from tests.pipelines.conftest import LAMP_SHOP
from tests.pipelines.test_browser import TOKEN, Server, known
from tests.pipelines.test_browser_pages import opened
from warehouse.store import Store

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.xdist_group("browser")
PAID = ("select subject from mart.decisions where stage = 'verify' and reason = 'attacker_passes' and detail like "
        "'%says_everything%' order by all")
THRICE = '[[checks]]\nkind = "spoke"\nrole = "gate"\ndescription = "It speaks thrice."\nparameters = {{ at_least = {} }}\n'


@pytest.fixture
def out(lamp_run: Path, tmp_path: Path) -> Path:
    shutil.copytree(lamp_run, tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def server(out: Path) -> Iterator[Server]:
    started = Server(out)
    yield started
    started.stop()


def family_of(out: Path, task: str) -> str:
    return known(out, f"select family from mart.tasks where task_id = '{task}'")


def decisions(out: Path, tasks: list[str]) -> dict[str, bool]:
    with Store.published(out / "warehouse.duckdb") as store:
        return dict(store.read(
            "select subject, reason in ('verified', 'below_min_precision') from mart.decisions where stage = 'verify' and "
            "subject in (select unnest($ids))", ids=tasks).iter_rows())


def test_plays_are_compared_by_what_they_did() -> None:
    def play(player: str, reward: float | None, what: str = "") -> GradedPlay:
        return GradedPlay(player, "attacker", reward, "fail", what)

    before = [play("lazy", 1.0), play("swap", 0.0, "a"), play("swap", 1.0, "a"), play("gone", 0.0), play("paid", 1.0)]
    after = [play("lazy", 0.0), play("swap", 0.0, "a"), play("swap", None, "a"), play("new", 1.0)]
    changes = changes_between(before, after)
    assert [(each.player, each.before, each.after, each.was_played, each.is_played) for each in changes] == [
        ("lazy", 1.0, 0.0, True, True), ("swap", 1.0, None, True, True), ("paid", 1.0, None, True, False),
        ("new", None, 1.0, False, True)]
    assert [each.player for each in changes if each.is_worse] == ["new"]


def test_every_kind_has_a_form() -> None:
    for name in kinds():
        schema = kind_of(name).parameters
        assert isinstance(skeleton(schema), dict)
        for parameter, value in schema.get("properties", {}).items():
            assert describe(parameter, value, False)["shape"]
    assert prepared("spoke", skeleton(kind_of("spoke").parameters))


@pytest.mark.slow
def test_a_file_is_tried_and_the_next_run_does_what_it_said(out: Path, tmp_path: Path) -> None:
    task = known(out, PAID)
    family = family_of(out, task)
    file = tmp_path / "rubrics" / f"{family}.toml"
    file.parent.mkdir()
    file.write_text(THRICE.format(3))
    before = sorted(path.name for path in out.rglob("*"))
    done = called("try", file, "--out", out, "--json")
    tried = {row["task_id"]: row for row in json.loads(done.stdout)["tasks"]}
    lost = [name for name, row in tried.items() if row["before"]["reason"] == "verified" != row["after"]["reason"]]
    assert done.returncode == (1 if lost else 0), done.stderr
    assert sorted(path.name for path in out.rglob("*")) == before, "nothing is written"
    assert tried[task]["before"]["reason"] == "attacker_passes" and tried[task]["after"]["reason"] == "verified"
    paid = [each for each in tried[task]["changes"] if each["player"] == "says_everything"]
    assert [(each["before"], each["after"], each["should"]) for each in paid] == [(1.0, 0.0, "fail")]
    (tmp_path / "traceroom.toml").write_text("")
    run = process("run", "--no-image", LAMP_SHOP, "--out", out, "--config", tmp_path / "traceroom.toml")
    assert run.returncode == 0, run.stderr
    assert decisions(out, list(tried)) == {name: row["after"]["reason"] == "verified" for name, row in tried.items()}
    again = called("try", file, "--out", out)
    assert again.returncode == 0 and "0 tasks change" in again.stderr, "the build has it by now"
    file.write_text(THRICE.format(99))
    one = called("try", file, "--out", out, "--task", task)
    assert one.returncode == 1 and "would no longer hold" in one.stderr and "spoke" in one.stderr


@pytest.mark.slow
def test_a_file_changes_a_mined_check(out: Path, tmp_path: Path) -> None:
    task = known(out, "select subject from mart.decisions where stage = 'verify' and kept order by all")
    checks = json.loads(known(out, f"select checks from mart.rubrics where task_id = '{task}'"))
    gate = next(check for check in checks if check["kind"] == "declined" or check["kind"] == "said")
    file = tmp_path / f"{family_of(out, task)}.toml"
    file.write_text(f'[[changes]]\ncheck = "{gate["check_id"]}"\naccepted = false\nwhy = "no duty"\ntasks = ["{task}"]\n')
    done = called("try", file, "--out", out, "--task", task[:8], "--json")
    (row,) = json.loads(done.stdout)["tasks"]
    assert row["task_id"] == task and any(each["after"] == 1.0 and each["should"] == "fail" for each in row["changes"])


@pytest.mark.parametrize("arguments, message", [
    (("none.toml",), r"none.toml: there is no such file"),
    (("nobody.toml",), "no family 'nobody'; there are: "),
    (("broken.toml",), "broken.toml: the rubric is no TOML"),
])
def test_what_is_wrong_with_a_file_is_one_sentence(lamp_run: Path, tmp_path: Path, arguments: tuple[str], message: str) -> None:
    (tmp_path / "nobody.toml").write_text(THRICE.format(2))
    (tmp_path / "broken.toml").write_text("[[checks")
    done = called("try", tmp_path / arguments[0], "--out", lamp_run)
    assert done.returncode == 2 and message in done.stderr and "hint" not in done.stdout
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


@pytest.mark.slow
def test_a_person_tries_a_check_in_the_browser_and_keeps_it(browser: Browser, out: Path, server: Server) -> None:  # noqa: F811
    said, task = list[str](), known(out, PAID)
    page = new_page(browser, said)
    opened(server, page, f"/task?id={task}")
    page.get_by_role("link", name="Add a check").click()
    page.locator("select[name=kind]").select_option("spoke")
    page.get_by_role("button", name="Show its form").click()
    page.get_by_label("Role").select_option("gate")
    page.get_by_label("Description").fill("It speaks <script>alert(1)</script> thrice.")
    page.get_by_label("Parameters (JSON)").fill('{"at_leas": 3}')
    page.get_by_role("button", name="Try", exact=True).click()
    page.locator("#problem").wait_for()
    assert "at_leas" in page.locator("#problem").inner_text() and "there are: at_least" in page.locator("#problem").inner_text()
    assert said == ["Failed to load resource: the server responded with a status of 400 (Bad Request)"]
    said.clear()
    page.get_by_label("Parameters (JSON)").fill('{"at_least": 3}')
    page.get_by_role("button", name="Try", exact=True).click()
    page.locator("#tried").wait_for()
    text = page.locator("#tried").inner_text()
    assert "1 task would newly hold" in text and "says everything" in text and "an attack passes" in text
    assert not (out / "corrections").exists(), "trying writes nothing"
    assert violations(page) == []
    page.get_by_label("Your name").fill("Ada")
    page.get_by_label("Why").fill("one message is no answer")
    page.get_by_role("button", name="Keep", exact=True).click()
    page.get_by_text("waits for the next run").wait_for()
    [line] = (out / "corrections/corrections.jsonl").read_text("utf-8").splitlines()
    kept = json.loads(line)
    assert kept["subject"]["kind"] == "check" and kept["subject"]["id"].startswith(f"{task}/")
    assert kept["value"]["kind"] == "spoke" and kept["value"]["parameters"] == {"at_least": 3} and kept["by"] == "Ada"
    done = process("run", "--no-image", LAMP_SHOP, "--out", out)
    assert done.returncode == 0, done.stderr
    assert decisions(out, [task]) == {task: True}, "the run does what the trial said"
    page.goto(f"http://127.0.0.1:{server.port}/task?id={task}")
    assert "followed" in page.locator("#corrected").inner_text() and "one message is no answer" in page.locator(
        "p.person").inner_text()
    page.locator("li", has=page.locator("p.person")).get_by_text("Change this check").click()
    page.get_by_label("Why").fill("a mistake")
    page.get_by_role("button", name="Withdraw the correction").click()
    page.get_by_text("waits for the next run").wait_for()
    last = json.loads((out / "corrections/corrections.jsonl").read_text("utf-8").splitlines()[-1])
    assert (last["subject"], last["value"]) == (kept["subject"], None)
    page.context.close()
    assert said == []


@pytest.mark.slow
def test_the_form_fits_a_phone_and_is_accessible(browser: Browser, lamp_run: Path) -> None:  # noqa: F811
    server, said, task = Server(lamp_run), list[str](), known(lamp_run, PAID)
    try:
        for told in ({}, {"color_scheme": "dark"}, {"viewport": PHONE}):
            page = new_page(browser, said, **told)
            for kind in ("combine", "order"):
                opened(server, page, f"/check?id={task}&kind={kind}")
                assert violations(page) == []
                assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
            page.context.close()
        assert said == []
    finally:
        server.stop()


def test_only_who_has_the_token_tries_and_hostile_fields_are_refused(out: Path, server: Server) -> None:
    task = known(out, PAID)
    form = {"id": task, "kind": "spoke", "role": "gate", "weight": "1", "description": "<script>alert(1)</script>",
            "parameters": "{}", "scope": "task", "do": "try"}
    assert server.ask("/check", form)[0] == 403
    cookie = server.enter()
    page = server.ask(f"/check?{urlencode({'id': task, 'kind': 'spoke'})}", Cookie=cookie)[2]
    token = page.split('name="form_token" value="')[1].split('"')[0]
    form["form_token"] = token
    assert server.ask("/check", form, Cookie=cookie, Origin="https://evil.example")[0] == 403
    status, _, text = server.ask("/check", form, Cookie=cookie)
    assert status == 200 and "<script" not in text and "&lt;script&gt;" in text and TOKEN not in text
    wrong: list[dict[str, Any]] = [
        {"parameters": "[" * 20_000}, {"parameters": "[]"}, {"parameters": '{"at_least": NaN}'}, {"parameters": '"\\ud800"'},
        {"parameters": '{"\\ud800": 1}'}, {"weight": "1e999"}, {"weight": "heavy"}, {"role": "king"}, {"kind": "nope"},
        {"description": " "}, {"do": "keep"}, {"do": "keep", "by": "Ada"}]
    for change in wrong:
        status, _, text = server.ask("/check", {**form, **change}, Cookie=cookie)
        assert status in (400, 404) and "Traceback" not in text, (change, status)
    assert server.ask("/check", {**form, "id": "nowhere"}, Cookie=cookie)[0] == 404
    assert not (out / "corrections").exists()
