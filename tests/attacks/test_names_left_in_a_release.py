"""Names that were stored before anybody knew them as names, in any spelling: no release has them without a word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.attacks.originals import values_by_file
from tests.attacks.report import Report
from tests.attacks.runs import RUN
from tests.command_line import process
from tests.pipelines.conftest import part_of_sample

_SPELLINGS = (
    "it is about {first} {last}", "{LAST} {FIRST}", "see {first}_{last}", "{last}, {first}", "GET /find?n={first}%20{last}",
    "{first}.{last}", "{first}-{last}", "also {first}  {last}")
_FIRST = ("qavrion", "zhelmut", "tirmodek", "vashklin", "ubrendo", "kweltan", "yostrim", "xandrup")
_LAST = ("drovenkal", "mirtsholm", "brakvesti", "qhundole", "zwirtanek", "pelmograd", "vrontisek", "klamdurin")


def session(number: int, text: str, record: dict[str, str]) -> str:
    """Return a conversation with a call."""
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": json.dumps({"q": number})}}
    return json.dumps({"session_id": f"n{number}", "messages": [
        {"role": "user", "content": text}, {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": json.dumps(record)},
        {"role": "assistant", "content": "Done."}]}) + "\n"


def attack(folder: Path, share: float) -> Report:
    """Read texts with names, on a later night the records that say whose they are, and release."""
    logs, out = part_of_sample(folder / "logs"), folder / "out"
    people = list(zip(_FIRST, _LAST, strict=True))
    words = [{"first": first, "last": last, "FIRST": first.upper(), "LAST": last.upper()} for first, last in people]
    texts = [spelling.format(**each) for spelling, each in zip(_SPELLINGS, words, strict=True)]
    (logs / "logs" / "first.jsonl").write_text("".join(session(n, text, {"ok": "yes"}) for n, text in enumerate(texts)))
    assert process(*RUN, logs, "--out", out).returncode == 0
    (logs / "logs" / "second.jsonl").write_text("".join(
        session(100 + n, "hello", {"user_id": f"{first}_{last}_{n}", "first_name": first.title(), "last_name": last.title(),
                                   "email": f"{first}@corp.io"}) for n, (first, last) in enumerate(people)))
    assert process(*RUN, logs, "--out", out).returncode == 0
    published = [out / name for name in ("environments", "rewards", "datasets", "unverified")]
    left = sorted({text for each in published if each.exists() for here in values_by_file(each, {*texts}).values()
                   for text in here})
    assert left, "some names were stored before they were known"
    done = process("release", "--out", out, "--json")
    message = done.stdout + done.stderr
    problems = [] if done.returncode == 1 and "no_personal_data_is_published" in message else [f"{left}: {message[-600:]}"]
    return Report(len(texts), tuple(problems))


@pytest.mark.slow
def test_a_release_with_names_is_refused(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
