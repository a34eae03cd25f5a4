"""Texts on which patterns go back and forth without end: blanks, brackets, marks and words by the thousand, where texts come
in."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from env_builder.runtime.texts import calculated
from env_builder.runtime.words import facts_in
from extractors.privacy.credentials import bytes_without_credentials, cut_fields, cut_out
from extractors.tasks.names import asked_by
from extractors.tasks.words import phrases_of
from extractors.templates import named
from pipelines.browser.shown import pretty, visible
from pipelines.screen import printable
from tests.attacks.logs import conversation, read_log
from tests.attacks.report import Report
from tests.extractors.privacy.test_carrying import cleaned

UNITS = ("a", "1", "A", " ", "\n", "\t", "-", "_", ".", "/", "{", "[", "(", "<", "\\", '"', "'", ":", ",", "=", "a1", "a ",
    "a.", "a-", "a@", "@a", "A a ",
         "1,", "1.", "1-", "{}", "<a", 'a="', '\\"', "http://a", "%a", "#", "é", "漢", "0 ", "- ", "| a ", "Aa", "::", "a, ",
         "A, a ", "2026-01-01 ", "Bearer ",
         "password ", "key=", "eyJ", "-----BEGIN PRIVATE KEY ", "x=1;", "(a", "&a=b", "Dear A ", "my name is ", "A. ", "a:b ",
         "0x", "<tool_call>", "\\n")
LENGTH, MOST_S = 60_000, 12.0


class TooLong(Exception):
    """A function did not end in time."""


def works(folder: Path) -> dict[str, Callable[[str], Any]]:
    """Return what reads texts of logs, agents and models."""
    return {
        "secrets": cut_out, "fields": cut_fields, "bytes": lambda text: bytes_without_credentials(text.encode()),
        "people": lambda text: cleaned(("message", text)), "phrases": phrases_of, "facts": facts_in,
        "arithmetic": lambda text: calculated(text, ["plain"]), "templates": lambda text: named([text, text + "x"]),
        "goals": asked_by, "pages": lambda text: pretty(visible(text)), "terminals": printable,
        "a message": lambda text: read_log(conversation(1, text, text), folder / "log.jsonl"),
        "a line": lambda text: read_log(f"2026-01-01 10:00:00 INFO {text}\n".encode(), folder / "log.log"),
        "a call": lambda text: read_log(json.dumps({"session_id": "s", "messages": [
            {"role": "user", "content": "x"}, {"role": "assistant", "content": text, "tool_calls": [
                {"id": text, "type": "function", "function": {"name": text[:60], "arguments": text}}]},
            {"role": "tool", "tool_call_id": text, "content": text}]}).encode() + b"\n", folder / "call.jsonl")}


def attack(folder: Path, share: float) -> Report:
    """Give each text to all that reads texts, each a few seconds at most."""
    problems, n_tried = [], 0
    length, units = (LENGTH, UNITS) if share >= 0.1 else (LENGTH // 12, UNITS[::11])

    def late(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, late)   # of the processor: a busy machine does not count
    try:
        for name, work in works(folder).items():
            for unit in units:
                n_tried += 1
                begun = time.process_time()
                signal.setitimer(signal.ITIMER_PROF, MOST_S)
                try:
                    work(unit * (length // len(unit)) + "\0!")
                except TooLong:
                    problems.append(f"{name}: {unit!r} takes more than {time.process_time() - begun:.1f} s")
                except Exception as error:
                    problems.append(f"{name}: {unit!r}: {type(error).__name__}: {str(error)[:100]}")
                finally:
                    signal.setitimer(signal.ITIMER_PROF, 0)
    finally:
        signal.signal(signal.SIGPROF, before)
    return Report(n_tried, tuple(problems))


@pytest.mark.slow
def test_no_text_takes_for_ever(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
