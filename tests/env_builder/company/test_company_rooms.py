"""The environment of a company: one world for all its tasks, each with an instant and a person, and its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from env_builder import Environment, image
from env_builder.agents.tools import WorkingFolder
from env_builder.backends import company_source
from env_builder.company.content import company_app
from env_builder.company.rooms import CompanyTask, unknown_people, write_company
from env_builder.process import EnvironmentProcess, start_process
from env_builder.runtime.office.office_files import read_workbook, trimmed, write_workbook
from env_builder.verify import verify
from tests.apps import rubric
from tests.small_company import ADA, BEN, CLEO, content_of, fields_of, instant_at, mail_of, sheets_of
from warehouse.errors import Unavailable

STOCK = [["what", "n"], ["oats", "2"], ["rye", "3"], ["all", "=SUM(B2:B3)"]]
LATER = [["what", "n"], ["oats", "9"], ["rye", "3"], ["all", "=SUM(B2:B3)"]]
CONTENT = content_of(
    sheets_of("f1", -900, "Stock", ADA, [], Bins=STOCK), fields_of("sheet", "f1", 500, **{"!Bins": LATER}),
    sheets_of("f2", -900, "Pay", BEN, [BEN], Sums=[["1"]]),
    fields_of("sheet", "f3", -900, name="Plan.md", owner=ADA, readers=[], text="first\n"),
    fields_of("sheet", "f4", -900, name="Scan.pdf", owner=ADA, readers=[], sha256="0", size=3),
    mail_of("<m1@mill.example>", -800, BEN, [ADA], "Oats", "Please set the oats to 5."))
BINS = {"spreadsheet_id": "f1", "range_name": "Bins!B2"}
SOLUTION = [{"tool": "modify_sheet_values", "arguments": {**BINS, "values": [["5"]]}}]


def task_of(name: str, at: float = 0, person: str = ADA, **more: Any) -> CompanyTask:
    return CompanyTask(name * 64, instant_at(at), person, "Please set the oats to 5.", **more)


def graded(folder: Path) -> CompanyTask:
    """Return the task with a rubric: the oats are 5 and nothing else changed."""
    plain = task_of("a")
    write_company("company", CONTENT, [plain], folder / "plain", folder / "none")
    environment = Environment.load_room(folder / "plain")
    environment.reset(plain.task_id)
    for step in SOLUTION:
        environment.call(step["tool"], step["arguments"])
    return plain._replace(rubric=rubric(environment.difference(), plain.task_id), solution=SOLUTION)


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("company")
    tasks = [graded(folder), task_of("b", 600), task_of("c", person=BEN)]
    write_company("company", CONTENT, tasks, folder / "out/environments/company", folder / "out/rewards/company")
    return folder / "out/environments/company"


def cells(environment: Environment) -> str:
    return environment.call("read_sheet_values", {**BINS, "range_name": "Bins!A1:B9"}).content


def test_a_task_that_holds_is_verified_as_any_other(room: Path) -> None:
    verified = verify(room, room.parents[1] / "rewards/company", ["a" * 64])
    assert verified.task_ids == ["a" * 64], verified.decisions


def test_tasks_share_one_world_and_differ_in_instant_and_person(room: Path) -> None:
    environment = Environment.load_room(room)
    seen = {}
    for name in "abc":
        environment.reset(name * 64)
        files = environment.call("search_drive_files", {"query": ""}).content
        seen[name] = (["oats", "2"] in read_workbook(environment.folder()["drive/Stock.xlsx"])["Bins"], "Pay" in files)
    assert seen == {"a": (True, False), "b": (False, False), "c": (True, True)}
    rows = [json.loads(line) for line in (room / "tasks.jsonl").read_text().splitlines()]
    assert {row["acting_for"] for row in rows} == {ADA, BEN}
    names = [path.name for path in room.rglob("*") if path.is_file() and "runtime" not in path.parts]
    assert names.count("versions.jsonl") == 1 and not [name for name in names if "index" in name or name.endswith(".db")]


def test_tasks_change_no_image(room: Path, tmp_path: Path) -> None:
    write_company("company", CONTENT, [task_of("d", person=CLEO)], tmp_path / "e", tmp_path / "r")
    one, other = (json.loads((folder / "manifest.json").read_text()) for folder in (room, tmp_path / "e"))
    assert one["room_digest"] == other["room_digest"] and one["content_digest"] != other["content_digest"]


def test_a_stranger_begins_no_task() -> None:
    (source,) = [company_source(CONTENT)]
    assert source.options["endpoints"].keys() == {"gmail", "drive"}
    reasons = unknown_people(company_app(CONTENT), [task_of("a"), task_of("b", person="zoe@mill.example")])
    assert list(reasons) == ["b" * 64] and "zoe@mill.example" in reasons["b" * 64]


def test_files_and_tools_show_the_same_cells(room: Path) -> None:
    environment = Environment.load_room(room)
    environment.reset("a" * 64)
    assert sorted(environment.folder()) == ["drive/Plan.md", "drive/Stock.xlsx"], "Pay is Ben's, and no export has the scan"
    book = read_workbook(environment.folder()["drive/Stock.xlsx"])
    assert book == {"Bins": STOCK}
    environment.call(*SOLUTION[0].values())
    book = read_workbook(environment.folder()["drive/Stock.xlsx"])
    assert book["Bins"][1] == ["oats", "5"] and "'all', '8'" in cells(environment)
    book["Bins"][2][1] = "4"
    book["New"] = [["x"]]
    assert environment.save("drive/Stock.xlsx", write_workbook(book)).content == "Saved drive/Stock.xlsx."
    assert "'all', '9'" in cells(environment)
    assert environment.difference()["documents"].keys() == {"sheet/f1"}
    assert trimmed(read_workbook(environment.folder()["drive/Stock.xlsx"])["New"]) == [["x"]]


def test_a_save_is_an_act_that_a_grader_makes_again(room: Path) -> None:
    environment = Environment.load(room)
    environment.reset("a" * 64)
    before = environment.state_hash()
    content = environment.folder()["drive/Stock.xlsx"]
    assert "Nothing" in environment.save("drive/Stock.xlsx", content).content and environment.state_hash() == before
    environment.save("drive/Stock.xlsx", write_workbook({"Bins": [["what", "n"], ["oats", "5"], *STOCK[2:]]}))
    environment.finish()
    assert environment.grade_journal("a" * 64, environment.journal).reward == 1.0
    assert "save_file" not in (room / "tools.jsonl").read_text()


@pytest.mark.parametrize(("path", "content"), [
    ("drive/Stock.xlsx", b"no workbook"), ("drive/../x.xlsx", write_workbook({"T": []})), ("x.xlsx", write_workbook({"T": []})),
    ("drive/a.exe", b"x"), ("drive/Plan.md", b"\xff"), ("drive/Big.md", b"x" * 700_001)])
def test_what_is_no_file_of_the_drive_is_refused(room: Path, path: str, content: bytes) -> None:
    environment = Environment.load_room(room)
    environment.reset("a" * 64)
    assert environment.save(path, content).is_error
    assert environment.difference()["documents"] == {}


def use_folder(process: EnvironmentProcess, root: Path) -> None:
    folder = WorkingFolder(process.request, root)
    folder.fetch()
    assert (root / "drive/Plan.md").read_text() == "first\n"
    assert folder.send() == []
    (root / "drive/Plan.md").write_text("second\n")
    (root / "drive/Mine.xlsx").write_bytes(write_workbook({"T": [["=1+1"]]}))
    assert folder.send() == ["Saved the new file drive/Mine.xlsx.", "Saved drive/Plan.md."]
    process.call(*SOLUTION[0].values())
    folder.fetch()
    assert read_workbook((root / "drive/Stock.xlsx").read_bytes())["Bins"][1] == ["oats", "5"]
    assert "second" in process.call("get_drive_file_content", {"file_id": "f3"}).content
    assert "Mine" in process.call("search_drive_files", {"query": "mine"}).content
    assert folder.send() == []


def test_a_folder_beside_a_process_is_kept_in_step(room: Path, tmp_path: Path) -> None:
    with start_process(room, "a" * 64) as process:
        assert process.request("traceroom/files")["folders"] == ["drive"]
        use_folder(process, tmp_path)
        assert [row["tool"] for row in process.journal() if row["kind"] == "call"][:3] == [
            "save_file", "save_file", "modify_sheet_values"]


@pytest.fixture(scope="module")
def image_id(room: Path, base_image: str) -> str:
    made = image.build(room, base_image)
    assert made.image_id is not None, made.skip_reason
    return made.image_id


@pytest.mark.docker
def test_an_agent_in_a_container_finds_the_files_and_saves_them(room: Path, image_id: str, base_image: str) -> None:
    program = (
        "import sys; sys.path.insert(0, '/tools'); from tools import call\n"
        "text = open('/work/drive/Plan.md').read(); open('/work/drive/Plan.md', 'w').write(text + 'third')\n"
        "print(call('get_drive_file_content', {'file_id': 'f3'})[0])\n"
        "open('/work/drive/Last.md', 'w').write('end')\n")
    with image.start(room, "a" * 64, image_id=image_id) as process, image.agent(process, base_image) as agent:
        done = agent.run(["python3", "-c", program])
        assert done.stdout.decode() == "first\nthird\n", done.stderr
        assert [row["tool"] for row in process.journal()] == ["save_file", "get_drive_file_content", "save_file"]
        assert "Last" in process.call("search_drive_files", {"query": "last"}).content


@pytest.mark.docker
@pytest.mark.slow
def test_an_agent_changes_a_workbook_with_the_software_of_its_image(room: Path, image_id: str) -> None:
    row = json.loads((room / "manifest.json").read_text())["apps"][0]
    try:
        if not image.engine().images.list(image.OFFICE_BASE):
            image.make_base(image.OFFICE_BASE, packages=row["software"])
    except Unavailable as error:
        pytest.skip(str(error))
    program = (
        "import openpyxl; book = openpyxl.load_workbook('/work/drive/Stock.xlsx'); sheet = book['Bins']\n"
        "assert [cell.value for cell in sheet[4]] == ['all', '=SUM(B2:B3)'] and sheet['B2'].value == 2\n"
        "sheet['B2'] = 5; book.save('/work/drive/Stock.xlsx')\n")
    with image.start(room, "a" * 64, image_id=image_id) as process, image.agent(process) as agent:
        done = agent.run(["python3", "-c", program])
        assert done.exit_code == 0, done.stderr
        assert "'all', '8'" in process.call("read_sheet_values", {**BINS, "range_name": "Bins!A1:B9"}).content
        journal = process.journal()
    assert Environment.load(room).grade_journal("a" * 64, journal).reward == 1.0
