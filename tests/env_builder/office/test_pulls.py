"""Pull requests and pushes of the code host's server."""

from __future__ import annotations

import json

import pytest

from env_builder.runtime.company import CompanyDesk, ProductRefusal, Undecided
from env_builder.runtime.office.github import TOOLS
from tests.small_company import ADA, desk_of, fields_of, is_open, world_of

PLACE = {"owner": "mill", "repo": "bins"}


def desk() -> CompanyDesk:
    """Return Ada's desk in a company with a repository, one merged pull request and a file."""
    return desk_of(world_of(
        fields_of("gh_repo", "bins", -1e6, full_name="mill/bins", address="https://code.example/mill/bins", digits=0,
                  pull_members=["number", "title", "state", "merged", "head", "base"], issue_members=[]),
        fields_of("gh", "bins#6", -900, number=6, repo="bins", is_pull=True, title="Oil", body="", state="closed", merged=True,
                  branch="oil", base="trunk", labels=[], reviewers=[], comments=0, author="ada"),
        fields_of("file", "bins:a.txt", -900, text="one\n")))


def answered(at: CompanyDesk, tool: str, **arguments: object) -> dict[str, object]:
    answer: dict[str, object] = json.loads(TOOLS[tool].answer(at, {**PLACE, **arguments}))
    return answer


def test_a_pull_request_is_opened_changed_and_merged() -> None:
    at = desk()
    made = answered(at, "create_pull_request", title="Fix", head="fix-1", base="trunk")
    assert made == {"id": "bins#7", "url": "https://code.example/mill/bins/pull/7"}
    with pytest.raises(ProductRefusal, match="A pull request already exists for mill:fix-1"):
        answered(at, "create_pull_request", title="Again", head="fix-1", base="trunk")
    answered(at, "update_pull_request", pullNumber=7, title="Fix bins", reviewers=["ben"])
    assert answered(at, "merge_pull_request", pullNumber=7)["merged"] is True
    shown = answered(at, "pull_request_read", method="get", pullNumber=7)
    assert (shown["title"], shown["state"], shown["merged"]) == ("Fix bins", "closed", True)
    with pytest.raises(ProductRefusal, match="405 Pull Request is not mergeable"):
        answered(at, "merge_pull_request", pullNumber=7)


def test_what_a_merge_brings_to_the_main_line_is_open() -> None:
    at = desk()
    answered(at, "create_pull_request", title="Fix", head="fix-1", base="trunk")
    assert TOOLS["get_file_contents"].answer(at, {**PLACE, "path": "a.txt"}) == "one\n"
    answered(at, "merge_pull_request", pullNumber=7)
    assert is_open(TOOLS, at, "get_file_contents", **PLACE, path="a.txt")
    assert is_open(TOOLS, at, "list_commits", **PLACE)


def test_a_push_writes_files_and_a_commit_of_the_main_line_alone() -> None:
    at = desk()
    files = [{"path": "a.txt", "content": "two\n"}, {"path": "b/c.txt", "content": "new\n"}]
    pushed = answered(at, "push_files", branch="trunk", files=files, message="Change")
    assert TOOLS["get_file_contents"].answer(at, {**PLACE, "path": "b/c.txt"}) == "new\n"
    commit = answered(at, "list_commits")[0]   # type: ignore[index]
    assert commit["commit"]["message"] == "Change" and commit["commit"]["author"]["email"] == ADA
    assert pushed["object"] == {"sha": commit["sha"], "type": "commit"}
    with pytest.raises(Undecided):
        answered(at, "push_files", branch="side", files=files, message="Change")
