"""Which files are read, in which order, and what is said of the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from extractors import configuration
from extractors.inventory import discover
from warehouse.errors import InputError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("logs/b.jsonl", "logs/a.jsonl", "truth/sessions.jsonl", "more/truth/x.json", "feedback/f.csv", ".hidden/h",
                 "logs/.part", "tools.json"):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    return tmp_path / "in"


def names(folder: Path, **choice: list[str]) -> list[str]:
    return [each.relative for each in discover([folder], **choice)[0]]


def test_truth_and_hidden_files_are_never_read(folder: Path) -> None:
    files, decisions = discover([folder])
    assert [each.relative for each in files] == ["feedback/f.csv", "logs/a.jsonl", "logs/b.jsonl", "tools.json"]
    assert decisions["subject"].to_list() == ["more/truth/x.json", "truth/sessions.jsonl"]
    assert set(decisions["reason"]) == {"truth_folder"} and not decisions["kept"].any()


def test_only_and_without_choose_folders(folder: Path) -> None:
    assert names(folder, only=["logs"]) == ["logs/a.jsonl", "logs/b.jsonl"]
    assert names(folder, without=["logs"]) == ["feedback/f.csv", "tools.json"]
    assert names(folder, only=["truth"]) == []
    _, decisions = discover([folder], without=["logs"])
    assert decisions.filter(decisions["reason"] == "left_by_choice").height == 2


def test_a_file_given_twice_is_read_once(folder: Path) -> None:
    files, _ = discover([folder, folder / "logs", folder / "logs" / "a.jsonl"])
    assert len(files) == len({each.path.resolve() for each in files}) == 4


def test_a_truth_folder_that_is_given_by_name_is_not_read_below_another(folder: Path) -> None:
    files, _ = discover([folder / "logs", folder / "more"])
    assert [each.relative for each in files] == ["a.jsonl", "b.jsonl"]
    (folder / "more" / "Truth").mkdir()
    (folder / "more" / "Truth" / "y.json").touch()
    assert "more/Truth/y.json" in discover([folder])[1]["subject"].to_list()
    for given in (folder / "truth", folder / "truth" / "sessions.jsonl", folder / "more" / "Truth"):
        assert discover([given])[0] == [] and discover([given])[1]["reason"].to_list() == ["truth_folder"]


def test_what_is_not_there_is_one_sentence_with_the_hint(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone: there is no such file or folder; check the path\.$"):
        discover([tmp_path / "gone"])
    with pytest.raises(InputError, match="there is nothing to read"):
        discover([])


def test_a_file_belongs_to_the_first_source_that_holds_it(folder: Path) -> None:
    told = folder.parent / "traceroom.toml"
    told.write_text('[[sources]]\nname = "desk"\npaths = ["in/logs"]\nservice = "front"\n[[sources]]\nname = "rest"\n')
    files, _ = discover([folder], configuration=configuration.load(told))
    assert {each.relative: each.source.name for each in files} == {
        "feedback/f.csv": "rest", "logs/a.jsonl": "desk", "logs/b.jsonl": "desk", "tools.json": "rest"}
    assert [each.relative for each in discover([], configuration=configuration.load(told))[0]] == ["a.jsonl", "b.jsonl"]
