"""Links in a folder of logs that lead out of it: what they lead to is not read, and it is said."""

from __future__ import annotations

from pathlib import Path

from extractors.inventory import discover
from tests.attacks.report import Report

LINE = '{"session_id": "s", "messages": [{"role": "user", "content": "secret"}]}\n'


def attack(folder: Path, share: float) -> Report:
    """Link to files and folders outside, directly and over several links, and to one inside."""
    outside, inside, problems = folder / "outside", folder / "logs", []
    outside.mkdir(parents=True)
    (inside / "deep").mkdir(parents=True)
    (outside / "secret.jsonl").write_text(LINE)
    (inside / "own.jsonl").write_text(LINE)
    (inside / "beside.jsonl").symlink_to("own.jsonl")
    (inside / "link.jsonl").symlink_to(outside / "secret.jsonl")
    (inside / "deep" / "relative.jsonl").symlink_to("../../outside/secret.jsonl")
    (inside / "deep" / "chain.jsonl").symlink_to("../link.jsonl")
    (inside / "folder").symlink_to(outside)
    (folder / "logs-secret").mkdir()
    (folder / "logs-secret" / "x.jsonl").write_text(LINE)
    (inside / "prefix.jsonl").symlink_to(folder / "logs-secret" / "x.jsonl")
    files, decisions = discover([inside])
    read = {each.path.resolve() for each in files}
    problems += [f"{path} is read" for path in read if inside.resolve() not in path.parents]
    links = decisions.filter(decisions["reason"] == "link_out_of_folder").height
    problems += [f"{links} of 4 links are in the decisions"] if links != 4 else []
    problems += [f"{len(files)} files are read, not the one of the folder"] if len(read) != 1 else []
    return Report(5, tuple(problems))


def test_links_out_of_a_folder_are_not_followed(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()


def test_a_link_that_is_named_itself_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(LINE)
    (tmp_path / "logs").mkdir()
    link = tmp_path / "logs" / "b.jsonl"
    link.symlink_to(tmp_path / "a.jsonl")
    assert len(discover([link])[0]) == 1
