"""Logs with planted people and credentials, and a search for them in all that is written: files, databases, packed data."""

from __future__ import annotations

import base64
import json
import re
import sqlite3
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import ROOT
from tests.pipelines.conftest import part_of_sample

sys.path.insert(0, str(ROOT / "benchmarks"))

from privacy_people import plant
from privacy_published import left_in

_MAIL = re.compile(rb"[A-Za-z][\w.+-]*@[\w-]+(?:\.[\w-]+)+")
_ADDRESS = re.compile(rb"data:[\w/+]+;base64,([\w+/=]+)")
_SQLITE = b"SQLite format 3\0"
CREDENTIALS = {
    "password in a form": "Tr0ub4dor-und-3", "key of a cloud": "AKIAIOSFODNN7EXAMPLE",
    "token of a forge": "ghp_" + "R4nd0m" * 6,
    "token of a chat": "xoxb-2345678901-2345678901234-" + "Zx9Kq" * 4 + "abcd", "key of a payment": "sk_live_" + "4eC39HqL" * 3,
    "token in a header": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "password in an address": "hunter2-hunter2", "cookie": "s3ss10n-c00k1e-98765"}


def logs_with_originals(folder: Path, n_people: int = 20) -> tuple[Path, set[str]]:
    """Write logs with people, credentials and damaged lines; return the folder, and what of people must not be found."""
    logs = part_of_sample(folder)
    planted = plant(logs / "logs", n_people)
    (logs / "logs" / "keys.jsonl").write_text("".join(_session_with_credentials(number) for number in range(4)), "utf-8")
    people = {each.value for each in planted if each.side == "structured"}
    lines = (logs / "logs" / "planted.jsonl").read_text("utf-8").splitlines()
    damaged = [line[:-200] for line in lines[:6]] + [_session_with_credentials(9)[:-40]]
    (logs / "logs" / "damaged.jsonl").write_text("\n".join(damaged) + "\n", "utf-8")
    (logs / "logs" / "damaged.json").write_bytes(lines[0].encode()[:-60] + b"\xff\xfe" + lines[2].encode())
    mails = {each.decode() for path in logs.rglob("*") if path.is_file() for each in _MAIL.findall(path.read_bytes())}
    return logs, people | mails


def _session_with_credentials(number: int) -> str:
    secret = CREDENTIALS
    form = f"user=ada&password={secret['password in a form']}"
    headers = {"Authorization": f"Bearer {secret['token in a header']}", "Cookie": f"sessionid={secret['cookie']}"}
    texts = [
        f"deploy with {secret['key of a cloud']} and {secret['token of a forge']}",
        f"the bot has {secret['token of a chat']}, the till {secret['key of a payment']}",
        f"clone https://ada:{secret['password in an address']}@git.example/repository.git"]
    call = {"id": "c1", "type": "function", "function": {"name": "log_in", "arguments": json.dumps(
        {"body": form, "password": secret["password in a form"], "headers": headers})}}
    messages = [{"role": "user", "content": texts[number % 3]}, {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": json.dumps({"ok": True, "headers": headers})},
                {"role": "assistant", "content": texts[(number + 1) % 3]}]
    return json.dumps({"session_id": f"keys-{number}", "messages": messages}) + "\n"


def values_by_file(folder: Path, values: set[str]) -> dict[str, set[str]]:
    """Return the values that each file holds, as it lies or as what it holds, of the files that hold some."""
    by_file = {name: set(here) for name, here in left_in(folder, values).items()}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            text = "\n".join(_contents(path)).lower()
            if here := {value for value in values if value.lower() in text}:
                by_file.setdefault(path.relative_to(folder).as_posix(), set()).update(here)
        if here := {value for value in values if value.lower() in path.name.lower()}:
            by_file.setdefault(f"{path.relative_to(folder)} (its name)", set()).update(here)
    return by_file


def traces(folder: Path, values: set[str]) -> list[str]:
    """Name the files in which a value stands, with the values."""
    return traces_of_groups(folder, values)[0]


def traces_of_groups(folder: Path, *groups: set[str]) -> list[list[str]]:
    """Name the files in which a value stands for each group of values; all are searched for at once."""
    by_file = sorted(values_by_file(folder, set().union(*groups)).items())
    return [[f"{name}: {sorted(here & group)[:4]}" for name, here in by_file if here & group] for group in groups]


def _contents(path: Path) -> Iterator[str]:
    """Yield what is packed in a file: rows of SQLite, what is deflated in them or in the file, pictures in texts."""
    content = path.read_bytes()
    yield from _unpacked(content)
    if content.startswith(_SQLITE):
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
            tables = [name for name, in connection.execute("select name from sqlite_master where type = 'table'")]
            for table in tables:
                for row in connection.execute(f'select * from "{table}"'):
                    for value in row:
                        data = value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else b""
                        text = data.decode("utf-8", "replace")
                        yield from (text, text.replace("\\", ""))   # Markdown escapes what may be markup
                        yield from _unpacked(data)


def _unpacked(content: bytes) -> Iterator[str]:
    for match in _ADDRESS.finditer(content):
        letters = match.group(1).rstrip(b"=")
        yield base64.b64decode(letters[:len(letters) // 4 * 4]).decode("utf-8", "replace")
    if content[:1] == b"\x78":
        try:
            yield zlib.decompress(content).decode("utf-8", "replace")
        except zlib.error:
            return
