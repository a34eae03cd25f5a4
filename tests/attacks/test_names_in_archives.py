"""Archives whose names lead elsewhere, come twice, or need a password: nothing is written, nothing is read twice or lost."""

from __future__ import annotations

import io
import tempfile
import warnings
import zipfile
from pathlib import Path

from tests.attacks.logs import conversation, files_below, read_log
from tests.attacks.report import Report

NAMES = ("../../planted.jsonl", "/etc/planted.jsonl", "a/../../planted.jsonl", "..\\planted.jsonl", "C:\\planted.jsonl",
         "con", "a\nb.jsonl", "\u202elnosj.a", "-rf", "a" * 300)


def attack(folder: Path, share: float) -> Report:
    """Read archives with such names, with two files of one name, and with an encrypted one."""
    logs = folder / "logs"
    logs.mkdir()
    places = (folder, Path(tempfile.gettempdir()) / "planted", Path("/etc"))
    problems, before = [], files_below(folder, Path("/etc"))
    for number, name in enumerate(NAMES):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as packing:
            packing.writestr(name, conversation(number))
        log = read_log(buffer.getvalue(), logs / "log.zip")
        problems += [] if log.texts or log.reasons else [f"{name!r} vanishes"]
    (logs / "log.zip").unlink()
    written = files_below(folder, Path("/etc")) - before
    problems += [f"{path} was written" for path in written] + [f"{place} is there" for place in places[1:2] if place.exists()]
    twice = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(twice, "w") as packing:
        warnings.simplefilter("ignore")
        packing.writestr("a.jsonl", conversation(1))
        packing.writestr("a.jsonl", conversation(2))
    log = read_log(twice.getvalue(), logs / "twice.zip")
    problems += [] if "two files" in str(log.reasons) else [f"of two files of one name one vanishes: {log.reasons}"]
    data = bytearray(twice.getvalue())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    log = read_log(bytes(data), logs / "encrypted.zip")
    problems += [] if log.reasons else ["an encrypted file vanishes"]
    return Report(len(NAMES) + 2, tuple(problems))


def test_names_in_archives_lead_nowhere(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
