"""Changes: what became of what a session made, and which commit solved what it was asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from extractors.workspaces.changes import CodeChange, HostEvent, MainLine
from extractors.workspaces.frames import Frame, frames
from extractors.workspaces.repository import Repository
from tests.extractors.workspaces.commits import FIRST, commit_all

REQUEST = "The wick smokes when the lantern is cold. LAN-12"
SMOKE = {"lantern.py": "def burn():\n    return 'smoke'\n", "tests/test_lantern.py": ""}
WRONG = {"lantern.py": "def burn():\n    return ''\n"}
RIGHT = {"lantern.py": "def burn():\n    return 'light'\n", "tests/test_lantern.py": "def test_burn(): ...\n"}
COMMITS = (("Light the lantern", SMOKE), ("Trim the wick so that it does not smoke (#7)", WRONG),
           ('Revert "Trim the wick so that it does not smoke (#7)"', {"lantern.py": SMOKE["lantern.py"]}),
           ("Describe the lantern", {"README.md": "A lantern.\n"}), ("LAN-12: burn clean when cold", RIGHT))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repository]:
    folder = tmp_path_factory.mktemp("lantern")
    commit_all(folder, *COMMITS)
    with Repository.open(folder) as opened:
        yield opened


def pull(action: str, number: int, hours: float, **facts: Any) -> HostEvent:
    return HostEvent(f"pull_request.{action}", {"number": number, **facts}, FIRST + timedelta(hours=hours))


def session(number: int | None = None, *commands: str) -> list[Frame]:
    edit = {"file_path": "lantern.py", "old_string": "    return 'smoke'", "new_string": "    return ''"}
    calls = [(edit, ""), *(({"command": each}, "") for each in commands)]
    calls += [({"command": "gh pr create --fill"}, f"https://git.example/shop/lantern/pull/{number}\n")] if number else []
    return [each for arguments, content in calls for each in frames(json.dumps(arguments), content, False)]


def change(repository: Repository, frames_of_session: list[Frame], *events: HostEvent, request: str = REQUEST) -> CodeChange:
    history = MainLine(repository, events)
    return history.change_of(request, frames_of_session, history.commits[0])


def ids(repository: Repository) -> list[str]:
    return [commit.commit_id for commit in MainLine(repository, ()).commits]


@pytest.mark.parametrize("facts", [{"merge_commit": None}, {"merge_commit": "see push"}, {}])
def test_a_merged_change_that_was_reverted_has_another_winner(repository: Repository, facts: dict[str, Any]) -> None:
    commits = ids(repository)
    closed = pull("closed", 7, 1, merged=True, head_commit="f" * 40, **facts)
    ran = HostEvent("workflow_run.completed", {"commit": "f" * 40, "conclusion": "failure"}, FIRST + timedelta(hours=0.9))
    assert change(repository, session(7), closed, ran) == CodeChange(
        7, "merged", commits[1], commits[2], "failure", commits[4], "likeness")


def test_a_merged_change_that_stayed_wins_itself(repository: Repository) -> None:
    commits = ids(repository)
    closed = pull("closed", 9, 4, merged=True, merge_commit=commits[4])
    assert change(repository, session(9), closed) == CodeChange(9, "merged", commits[4], None, None, commits[4], "itself")


def test_a_change_is_recognised_by_the_branch_that_was_pushed(repository: Repository) -> None:
    opened = pull("opened", 5, 0.5, state="open", head_ref="fix/wick")
    made = change(repository, session(None, "git checkout -q -b fix/wick && git push -q -u origin fix/wick"), opened)
    assert (made.number, made.state, made.winner) == (5, "open", ids(repository)[4])


def test_a_push_at_the_moment_of_the_merge_is_its_commit(repository: Repository) -> None:
    commits = ids(repository)
    pushed = HostEvent("push", {"after": commits[4]}, FIRST + timedelta(hours=4, seconds=1))
    assert change(repository, session(11), pull("closed", 11, 4, merged=True), pushed).merge_commit == commits[4]


def test_nothing_wins_where_nothing_is_about_the_same(repository: Repository) -> None:
    made = change(repository, session(3), pull("closed", 3, 1, state="closed", merged=False), request="Add French prices")
    assert made == CodeChange(3, "closed")
    assert change(repository, [], request="What does burn do?") == CodeChange()


def test_what_is_taken_back_without_a_word_is_reverted(tmp_path: Path) -> None:
    commit_all(tmp_path, COMMITS[0], COMMITS[1], ("Tidy up", {"lantern.py": SMOKE["lantern.py"]}))
    with Repository.open(tmp_path) as repository:
        commits = ids(repository)
        assert change(repository, session(7), pull("closed", 7, 1, merged=True)).reverted_by == commits[2]
