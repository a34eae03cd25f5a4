"""What people do wrong on the first day: each gets one sentence with the hint, and exit code 2."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import pytest
import typer

from pipelines.cli import COMMANDS, app
from pipelines.reference import every_command
from tests.command_line import called

BROKEN = {"broken.toml": "name = [", "key.toml": 'colour = "red"\n', "format.toml": '[[sources]]\nformat = "nope"\n'}
MISTAKES = {
    "a path that is not there": (("run", "nowhere"), "nowhere: there is no such file or folder; give the path of your logs."),
    "an empty folder": (("run", "empty"), "empty: there is nothing to read: .*; name files or folders of logs, .*"),
    "a broken configuration": (("run", "logs", "--config", "broken.toml"), "broken.toml: the configuration is no TOML .*; .*"),
    "a key that is not known": (("run", "logs", "--config", "key.toml"), "key.toml: there is no key 'colour'; remove it, .*"),
    "a format that is not known": (("run", "logs", "--config", "format.toml"), "no format 'nope'; there are: access_log.*"),
    "a day in other words": (("run", "logs", "--since", "yesterday"),
                               r"--since: invalid date 'yesterday' \(expected YYYY-MM-DD\); write it as 20.*"),
    "a folder where nothing may be made": (("run", "logs", "--out", "/proc/here"), "/proc/here: .*; make room or .*"),
    "a device for a folder": (("run", "logs", "--out", "/dev/null"), "/dev/null: this is a file; give --out a folder."),
    "a file to look into": (("show", "--out", "key.toml"), "key.toml: this is a file; give --out a folder."),
    "an empty folder to sniff at": (("sniff", "empty"), "empty: there is no file in it; name a folder with logs."),
    "a configuration that is there": (("sniff", "own.csv", "--write", "key.toml"), "key.toml: the file exists already; .*"),
    "no mapping to write": (("sniff", "logs", "--write", "x.toml"), "x.toml: no mapping is proposed, .*; run without .*"),
    "nothing made yet": (("show", "--out", "empty"), ".*: there is no warehouse here yet; make it with: traceroom run LOGS .*"),
    "an exporter that is not known": (("export", "harbr", "x"), r"no exporter 'harbr'; there are: .*; did you mean 'harbor'\?"),
    "no environment": (("tasks", "empty"), "(no environment|empty).*; .*"),
    "an environment of another name": (("tasks", "OUT/nope"), "no environment '.*/nope'; there are: .*/environments/main."),
    "no model": (("rollout", "ROOM", "--policy", "gpt"), ".*gpt.*; .*"),
    "no key of a model": (("play", "ROOM", "0da5", "--ask"), "--ask: no model is configured to answer; set TRACEROOM_MODEL .*"),
    "a port in use": (("serve", "ROOM", "--port", "PORT"), r"127.0.0.1:\d+: cannot listen there .*; choose another --port."),
    "no Docker": (("base-image",), ".*: no Docker engine answers; start one .*"),
}


@pytest.mark.parametrize("mistake", sorted(MISTAKES))
def test_one_sentence_with_the_hint(mistake: str, tmp_path: Path, sample_environment: Path,
                                    monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("empty", "logs"):
        (tmp_path / folder).mkdir()
    (tmp_path / "own.csv").write_text("talk,who,words\n1,client,hi\n1,agent,hello\n")
    (tmp_path / "logs" / "a.jsonl").write_text('{"messages": [{"role": "user", "content": "hello"}]}\n')
    for name, text in BROKEN.items():
        (tmp_path / name).write_text(text)
    line, said = MISTAKES[mistake]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        named = {"ROOM": str(sample_environment), "PORT": str(taken.getsockname()[1]),
                 "OUT/nope": str(sample_environment.parents[1] / "nope")}
        done = called(*(named.get(word, word) for word in line), DOCKER_HOST="tcp://127.0.0.1:1", TRACEROOM_MODEL="")
    assert done.returncode == 2 and done.stdout == ""
    sentence = " ".join(done.stderr.split())
    assert re.fullmatch(rf"✗ {said}", sentence) and "Traceback" not in sentence, sentence


@pytest.mark.parametrize(("variable", "said"), [
    ("TRACEROOM_ENGINE",
     "no engine 'x'; there are: process, processes, ray; set TRACEROOM_ENGINE to one of them, or not at all."),
    ("TRACEROOM_WORKERS", "TRACEROOM_WORKERS: 'x' is no number of workers; set it to a whole number, or not at all."),
    ("TRACEROOM_MEMORY", "TRACEROOM_MEMORY: 'x' is no size of memory; write it as 4GB or 800MB, or do not set it.")])
def test_a_variable_that_says_nothing_known_is_refused_before_a_run_begins(variable: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"messages": [{"role": "user", "content": "hello"}]}\n')
    environment = {"TRACEROOM_ENGINE": "process", variable: "x"}
    done = called("run", tmp_path / "a.jsonl", "--out", tmp_path / "out", "--no-image", **environment)
    assert done.returncode == 2 and " ".join(done.stderr.split()) == f"✗ {said}" and not (tmp_path / "out").exists()


@pytest.mark.parametrize("held", [b"zzz yyy\n", bytes(range(256)) * 20], ids=["text", "binary"])
def test_a_file_in_no_known_format_is_left_and_it_is_said_what_to_do(held: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(held)
    done = called("run", tmp_path / "a.log", "--out", tmp_path / "out", "--no-image")
    assert done.returncode == 2 and "unknown_format" in done.stderr and "traceroom sniff FILE" in done.stderr
    assert "nothing was read of 1 file; run `traceroom sniff FILE`" in " ".join(done.stderr.split())


def test_every_command_has_a_sentence_and_an_example_that_it_takes() -> None:
    commands = _commands()
    assert commands.keys() == {name for name, *_ in COMMANDS}, "former names are hidden, and have no example of their own"
    for name, command in commands.items():
        assert (command.help or "").strip().endswith("."), name
        line = command.epilog.removeprefix("Example: ")
        words = re.findall(r"'[^']*'|\S+", line)[1 + len(name.split()):]
        command.make_context(name, [word.strip("'") for word in words])
        assert line and line in " ".join(called(*name.split(), "--help").stdout.split()), name


def test_help_shows_every_word_of_it() -> None:
    """What a terminal's markup would take for a style of its own is not swallowed."""
    for name, command in _commands().items():
        shown = _letters(called(*name.split(), "--help").stdout)
        told = [command.help, *(getattr(each, "help", None) for each in command.params)]
        assert [text for text in told if _letters(text or "") not in shown] == [], name


def _commands() -> dict[str, Any]:
    """Return the commands that are shown, by their names; of those in a group: GROUP COMMAND."""
    group: Any = typer.main.get_command(app)
    context = group.context_class(group, info_name="traceroom")
    return {name: command for name, command, _ in every_command(group, context)}


def _letters(text: str) -> str:
    """Without blanks, and the lines of tables."""
    return re.sub(r"[\s│╭╮╰╯─]", "", text)
