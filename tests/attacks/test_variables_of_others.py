"""Variables of the process that hold paths, numbers, line ends and nothing: commands end with a sentence, and print no
secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.reference import VARIABLES
from tests.attacks.logs import conversation
from tests.attacks.report import Report
from tests.command_line import called

VALUES = (
    "",
    " ",
    "x",
    "-1",
    "0",
    "1e999",
    "/nowhere/at/all",
    "/etc/passwd",
    "a\nb",
    "../../x",
    "é",
    "9" * 400,
    "true",
    "{}",
    "http://[",
    "file:///etc/shadow",
    "\ud83d",
)


def attack(folder: Path, share: float) -> Report:
    """Give each variable each value, and run commands that read them."""
    log = folder / "a.jsonl"
    log.write_bytes(conversation(1))
    problems, n_tried = [], 0
    for name in sorted(VARIABLES)[:: 1 if share >= 0.1 else 5]:
        for value in VALUES if share >= 0.1 else VALUES[::6]:
            for command in (("doctor",), ("sniff", log), ("pseudonym", "Emma Smith")) if share >= 0.1 else (("sniff", log),):
                n_tried += 1
                try:
                    done = called(*command, **{name: value})
                except UnicodeEncodeError:
                    continue  # no system lets such a variable be
                text = done.stdout + done.stderr
                problems += (
                    [f"{name} = {value[:20]!r}, {command[0]}: {text[-300:]}"]
                    if "mistake in Traceroom" in text or "Traceback" in text
                    else []
                )
                problems += [f"{name}: a file is shown"] if "root:x" in text else []
    secret = "what-nobody-may-see-0123456789"
    for name in sorted(VARIABLES) if share >= 0.1 else ():
        if any(word in name for word in ("KEY", "TOKEN", "SECRET", "PASSWORD")) and "FILE" not in name:
            n_tried += 1
            done = called("doctor", **{name: secret})
            problems += [f"doctor prints {name}"] if secret in done.stdout + done.stderr else []
    return Report(n_tried, tuple(problems))


@pytest.mark.slow
def test_a_variable_is_checked(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
