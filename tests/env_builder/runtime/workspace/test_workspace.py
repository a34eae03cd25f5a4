"""The tools of a repository: what they do, that errors are answers and change nothing, and that journals replay."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from env_builder import Environment
from env_builder.runtime.records import Result
from env_builder.runtime.workspace.sandbox import LINK, Sandbox
from tests.workspaces import TASK, cached_packages, content, environment, file, isolated, tree

LARGE = "".join(f"line {n}\n" for n in range(1, 3001))
BEGAN = {**tree(), "large.txt": file(LARGE), "picture.bin": file(b"\xff\xfe"), "run.sh": file("echo ran\n", 0o100755),
         "to": file("README.md", LINK), "dir/one": file("1\n"), "dir/two": file("2\n")}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = content(isolated(), BEGAN, lint=["sh", "-c", 'echo "checked $@"', "lint"])
    return environment(tmp_path_factory.mktemp("out"), made)


@pytest.fixture
def env(directory: Path) -> Environment:
    loaded = Environment.load(directory)
    loaded.reset(TASK)
    return loaded


def call(env: Environment, tool: str, **arguments: Any) -> Result:
    return env.call(tool, arguments)


def changed(env: Environment) -> dict[str, Any]:
    return {name.partition("/")[2]: value and json.loads(value) for name, value in env.difference()["documents"].items()}


def test_lines_are_read_behind_their_numbers(env: Environment) -> None:
    assert call(env, "read", path="README.md") == ("     1\tLengths and words.", False, "derived")
    assert call(env, "read", path="/repo/./large.txt", first_line=2999).content == "  2999\tline 2999\n  3000\tline 3000"
    shown = call(env, "read", path="large.txt", first_line=2, n_lines=1).content
    assert shown == "     2\tline 2\n[2998 more lines]"
    assert call(env, "read", path="large.txt").content.endswith("  2000\tline 2000\n[1000 more lines]")
    assert call(env, "read", path="measures/__init__.py").content == ""
    assert env.difference()["documents"] == {}


@pytest.mark.parametrize(("tool", "arguments", "message"), [
    ("read", {"path": "units.py"}, "did you mean measures/units.py?"),
    ("read", {"path": "large.txt", "first_line": 3001}, "3000 lines"),
    ("read", {"path": "picture.bin"}, "no text"), ("read", {"path": "to"}, "is a link to README.md"),
    ("read", {"path": "../etc/passwd"}, "invalid path"), ("read", {"path": "/etc/passwd"}, "invalid path"),
    ("read", {"path": ".git/config"}, "invalid path"), ("read", {"path": "dir"}, "no file"),
    ("read", {"path": "a\0"}, "invalid path"),
    ("edit", {"path": "README.md", "old": "absent", "new": ""}, "does not stand"),
    ("edit", {"path": "large.txt", "old": "line", "new": ""}, "3000 times"),
    ("edit", {"path": "none", "old": "a", "new": ""}, "no file"),
    ("edit", {"path": "to", "old": "R", "new": ""}, "link"), ("edit", {"path": "README.md", "old": "", "new": "x"}, ""),
    ("write", {"path": "dir", "content": ""}, "is a folder"), ("write", {"path": "README.md/x", "content": ""}, "is a file"),
    ("write", {"path": "to/x", "content": ""}, "is a file"), ("write", {"path": "to", "content": ""}, "is a link"),
    ("write", {"path": ".git/hooks/post-commit", "content": ""}, "invalid path"),
    ("search", {"pattern": "("}, "search failed"), ("search", {"pattern": "x", "files": "*.none"}, "no file is called"),
    ("test", {"paths": ["../x"]}, "invalid path"), ("open_pr", {"title": "t", "body": "b"}, "nothing was changed"),
    ("open_pr", {"title": "", "body": "b"}, ""), ("shell", {"command": ""}, ""),
    ("shell", {"command": "ls", "seconds": 9999}, ""),
    ("shell", {}, ""), ("read", {"path": "README.md", "first_line": 0}, ""), ("no_such_tool", {}, "")])
def test_errors_are_answers_and_change_nothing(env: Environment, tool: str, arguments: dict[str, Any], message: str) -> None:
    before = env.state_hash()
    answer = env.call(tool, arguments)
    assert answer.is_error and message in answer.content and answer.content
    assert env.difference()["documents"] == {} and env.state_hash() == before


def test_texts_are_edited_and_files_written(env: Environment) -> None:
    assert call(env, "edit", path="README.md", old="words", new="$& \\1 é").content == "replaced 1 in README.md"
    assert call(env, "edit", path="large.txt", old="line ", new="", everywhere=True).content == "replaced 3000 in large.txt"
    assert call(env, "write", path="new/deep/file.py", content="x = 1\n").content == "created new/deep/file.py"
    assert call(env, "write", path="run.sh", content="echo other\n").content == "replaced run.sh"
    assert call(env, "shell", command="cat README.md new/deep/file.py; ./run.sh; head -2 large.txt").content == (
        "Lengths and $& \\1 é.\nx = 1\nother\n1\n2")
    assert changed(env).keys() == {"README.md", "large.txt", "new/deep/file.py", "run.sh"}
    assert changed(env)["run.sh"]["mode"] == "0755"


def test_files_are_searched(env: Environment) -> None:
    assert call(env, "search", pattern="^def (length|plural)").content == (
        "measures/units.py:6:def length(text: str) -> int:\nmeasures/words.py:1:def plural(word: str) -> str:")
    assert call(env, "search", pattern="assert", files="test_words.py").content.count("\n") == 0
    assert call(env, "search", pattern="no such text").content == "nothing was found"
    many = call(env, "search", pattern="line").content.splitlines()
    assert len(many) <= 201 and many[0] == "large.txt:1:line 1"
    call(env, "write", path="added.txt", content="a needle\n")
    call(env, "shell", command="rm README.md")
    assert call(env, "search", pattern="needle|Lengths").content == "added.txt:1:a needle"


def test_a_pattern_that_backtracks_holds_nobody_up(env: Environment) -> None:
    call(env, "write", path="long.txt", content="a" * 5000 + "!\n")
    began = time.monotonic()
    call(env, "search", pattern="(a*)*(a*)*(a*)*\\1b$", files="long.txt")
    assert time.monotonic() - began < 30


def test_commands_say_how_they_ended(env: Environment) -> None:
    assert call(env, "shell", command="echo out; echo err >&2; exit 7") == ("out\nerr\n[exit code 7]", True, "derived")
    over = call(env, "shell", command="echo kept > file; sleep 60", seconds=1)
    assert over.is_error and "it was ended after 1 s" in over.content and "file" in changed(env)
    flood = call(env, "shell", command="echo lost > lost; for n in $(seq 90); do head -c 900K /dev/zero > f$n; done")
    assert "nothing of it stays" in flood.content and changed(env).keys() == {"file"}


@pytest.mark.parametrize("command", ["rm -r dir; mkdir dir", "rm dir/one dir/two", "rm -r dir", "rm -r dir; echo x > dir",
    "mv dir dir2",
                                     "rm -r dir; ln -s measures dir"])
def test_what_lay_in_a_folder_that_is_gone_is_gone_for_every_tool(env: Environment, command: str) -> None:
    call(env, "shell", command=command)
    assert call(env, "read", path="dir/one").is_error and call(env, "shell", command="cat dir/one").is_error
    assert changed(env)["dir/one"] is changed(env)["dir/two"] is None
    assert all(not line.startswith("dir/") for line in call(env, "search", pattern="[12]").content.splitlines())
    call(env, "shell", command="rm -rf dir dir2; mkdir dir; echo 1 > dir/one; echo 2 > dir/two")
    assert env.difference()["documents"] == {}


def test_git_has_one_commit_and_nothing_of_it_counts(env: Environment) -> None:
    every = "git log --all --format=%s; git status --short; git remote; git stash list; git reflog | wc -l"
    shown = call(env, "shell", command=every)
    assert shown.content.splitlines()[0] == "The repository as it was" and "??" not in shown.content
    call(env, "shell", command="echo x >> README.md; git add -A; git commit -qm mine; git tag t; "
                               "mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit")
    shown = call(env, "shell", command="git log --format=%s | wc -l; git diff HEAD~1 --stat | head -1")
    assert shown.content.startswith("2\n README.md")
    assert changed(env).keys() == {"README.md"}
    call(env, "shell", command="git checkout -q HEAD~1 -- . && git commit -qm back")
    assert env.difference()["documents"] == {}


def test_changed_files_are_checked(env: Environment) -> None:
    assert call(env, "lint").content == "nothing was found"
    call(env, "write", path="measures/bad.py", content="def (:\n")
    assert "measures/bad.py:1:" in call(env, "lint").content
    call(env, "write", path="measures/bad.py", content="x = 1\n")
    assert call(env, "lint").content.strip() == "checked measures/bad.py"


def test_pull_requests_are_records(env: Environment) -> None:
    call(env, "edit", path="README.md", old="words", new="texts")
    assert call(env, "open_pr", title="Say texts", body="").content == "opened pull request 1: Say texts"
    row = json.loads(env.difference()["documents"]["pull_request/1"])
    assert (row["files"], row["state"]) == (["README.md"], "open")
    assert env.read("pull_request/1")[1] and env.read("pull_request/2")[1] is None
    assert not {"list_prs", "list_issues", "comment"} & {tool["name"] for tool in env.tools}, "the log shows none"


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def row(number: int, since: str, until: str | None = None, kind: str = "pull_request", **value: Any) -> dict[str, Any]:
        return {"class": kind, "number": number, "from": since, "to": until,
                "value": {"number": number, "state": "open", "comments": [], **value}}

    host = [row(4, "2031-01-01T00:00:00+00:00", "2031-01-15T00:00:00+00:00", title="Add mils"),
            row(4, "2031-01-15T00:00:00+00:00", "2031-01-15T00:00:01+00:00", title="Add miles", state="merged"),
            row(4, "2031-01-15T00:00:01+00:00", title="told later"), row(9, "2031-01-15T00:00:01+00:00", title="told later"),
            row(6, "2030-12-31T00:00:00+00:00", kind="issue", title="No feet",
                comments=[{"author": "kim", "body": "Nor inches."}])]
    return environment(tmp_path_factory.mktemp("hosted"), content(isolated(), BEGAN)._replace(host=host))


def test_pull_requests_and_issues_are_visible_as_they_were_at_the_start(hosted: Path) -> None:
    env = Environment.load(hosted)
    env.reset(TASK)
    assert {tool["name"]: tool["annotations"]["readOnlyHint"] for tool in env.tools}.items() >= {
        "list_prs": True, "get_pr": True, "list_issues": True, "get_issue": True, "comment": False}.items()
    listed = call(env, "list_prs")
    assert json.loads(listed.content) == [{"number": 4, "title": "Add miles", "state": "merged", "n_comments": 0}]
    assert listed.tier == "derived" and json.loads(call(env, "list_prs", state="open").content) == []
    assert json.loads(call(env, "list_issues").content)[0]["n_comments"] == 1
    assert json.loads(call(env, "get_issue", number=6).content)["comments"] == [{"author": "kim", "body": "Nor inches."}]
    assert json.loads(call(env, "list_issues", before=6).content) == [] and env.difference()["documents"] == {}
    refused = {number: call(env, "get_pr", number=number) for number in (5, 6, 7, 9)}
    assert all(answer.is_error and "told later" not in answer.content for answer in refused.values())
    assert {number: answer.tier for number, answer in refused.items()} == {
        5: "unknown", 6: "derived", 7: "derived", 9: "derived"}, "5 exists somewhere; after 6 there is none yet"
    env.reset(None, at="2030-01-01T00:00:00Z")
    assert (call(env, "list_prs").tier, call(env, "get_pr", number=4).is_error) == ("unknown", True)


def test_what_an_episode_writes_on_them_is_part_of_its_state_and_its_journal(hosted: Path) -> None:
    env = Environment.load(hosted)
    env.reset(TASK)
    begun = env.state_hash()
    assert call(env, "comment", number=6, body="On it.").content == "commented on 6"
    commented = env.fork()
    call(env, "edit", path="README.md", old="words", new="texts")
    assert call(env, "open_pr", title="Say texts", body="Closes #6").content == "opened pull request 7: Say texts"
    assert [row["number"] for row in json.loads(call(env, "list_prs").content)] == [7, 4]
    call(env, "comment", number=7, body="Ready.")
    shown = json.loads(call(env, "get_pr", number=7).content)
    assert (shown["author"], shown["files"], shown["comments"][0]["body"]) == ("agent", ["README.md"], "Ready.")
    assert call(env, "comment", number=8, body="x").is_error and call(env, "comment", number=6, body="").is_error
    assert env.difference()["documents"].keys() == {"file/README.md", "issue/6", "pull_request/7"}
    before, now = env.read("issue/6")
    assert before and now and (before.count("body"), now.count("body")) == (1, 2)
    assert len({begun, commented.state_hash(), env.state_hash()}) == 3
    replayed = Environment.load(hosted).replay(TASK, json.loads(json.dumps(list(env.journal))))
    assert replayed.difference == env.difference()
    env.rollback(1)
    assert env.state_hash() == commented.state_hash() and call(env, "get_pr", number=7).is_error
    env.rollback(0)
    assert env.state_hash() == begun


def test_a_journal_replays_without_running_anything(env: Environment, directory: Path) -> None:
    call(env, "shell", command="date +%N%s | tee now; head -c 20 /dev/urandom > noise; rm -r dir; mkdir dir; ln -sf now to; "
                               "chmod -x run.sh")
    call(env, "edit", path="README.md", old="words", new="texts")
    call(env, "open_pr", title="t", body="b")
    call(env, "shell", command="rm noise; date +%N > $'\\xff odd'; exit 3")
    call(env, "shell", command="sleep 30", seconds=1.5)
    journal = json.loads(json.dumps(list(env.journal)))
    began = time.monotonic()
    replayed = Environment.load(directory).replay(TASK, journal)
    assert time.monotonic() - began < 1.2, "it sleeps again"
    assert replayed.difference == env.difference() and [row["content"] for row in replayed.journal] == [
        row["content"] for row in journal]


def test_names_that_are_no_text_reach_journals_and_hashes(env: Environment) -> None:
    call(env, "shell", command="touch $'\\xff\\xfe'; mkdir $'\\xfd'; echo 1 > $'\\xfd/in'")
    assert len(env.difference()["documents"]) == 2 and env.state_hash()
    json.dumps(list(env.journal)).encode()
    assert json.dumps(env.difference(), ensure_ascii=False).encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("left", [
    {"../x": [33188, "evil"]}, {"/etc/passwd": [33188, "evil"]}, {".git/config": [33188, "x"]}, {"a\0b": [33188, "x"]},
    {"": [33188, "x"]},
    {"a//b": [33188, "x"]}, {"./a": [33188, "x"]}, {"x" * 300: [33188, "x"]},
    {"a/" * 2000 + "a": [33188, "x"]}, "x", [1], {"\ud800": [33188, "x"]}])
def test_claims_of_a_journal_that_no_command_leaves_are_not_taken(directory: Path, left: Any) -> None:
    row = {"kind": "call", "tool": "shell", "arguments": {"command": "true"}, "content": "", "is_error": False, "left": left}
    assert Environment.load(directory).replay(TASK, [row]).difference["documents"] == {}


@pytest.mark.parametrize("value", [[33188], [-1, "x"], [10 ** 30, "x"], [LINK, ""], [LINK, "a\0"], [16384, "x"], ["x",
    "y"], 5, True, [4095, "x"],
                                   [33188, {"base64": "!"}], [33188, {}], [33188, None], [True, "x"]])
def test_files_of_a_journal_that_are_none_harm_nothing(directory: Path, value: Any) -> None:
    loaded = Environment.load(directory)
    row = {"kind": "call", "tool": "shell", "arguments": {"command": "true"}, "content": "", "is_error": False,
           "left": {"README.md": value}}
    twin = loaded.replaying(TASK)
    twin.retrace(row)
    assert not twin.call("shell", {"command": "ls"}).is_error


def test_the_repositorys_own_tests_run(tmp_path: Path) -> None:
    env = Environment.load(environment(tmp_path, content(isolated(), tree(), with_site=True)))
    env.reset(TASK)
    with cached_packages(tmp_path):
        some = call(env, "test", paths=["tests/test_words.py"])
    assert "1 passed" in some.content and not some.is_error
    whole = call(env, "test")
    assert whole.is_error and "KeyError: 'km'" in whole.content and "2 passed" in whole.content
    assert env.difference()["documents"] == {}


def test_a_workspace_without_a_sandbox_says_so_and_can_be_read(tmp_path: Path) -> None:
    env = Environment.load(environment(tmp_path, content("docker", tree())))
    env.reset(TASK)
    answer = call(env, "shell", command="ls")
    assert answer == (f"no sandbox (docker) can be made here: {answer.content.rpartition(': ')[2]}", True, "unknown") or (
        "needs an image" in answer.content and answer.is_error and answer.tier == "unknown")
    assert not call(env, "read", path="README.md").is_error
    with pytest.raises(Exception, match="needs an image"):
        Sandbox("docker").run(tmp_path, {}, ["true"])
