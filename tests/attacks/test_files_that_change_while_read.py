"""Logs that are cut, replaced, removed and written while they are read: the reader ends, and its events are of lines that
were there."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from extractors.inventory import SourceFile
from extractors.reading import read
from tests.attacks.logs import conversation
from tests.attacks.report import Report, counted
from warehouse.errors import TraceroomError

ROUNDS = 200


def attack(folder: Path, share: float) -> Report:
    """Read a file over and over while another thread changes it in every way."""
    path, problems, stopped = folder / "log.jsonl", [], threading.Event()
    content = b"".join(conversation(number, f"text {number}") for number in range(400))
    path.write_bytes(content)

    def change() -> None:
        number = 0
        while not stopped.is_set():
            number += 1
            try:
                if number % 4 == 0:
                    os.truncate(path, number * 37 % len(content))
                elif number % 4 == 1:
                    path.unlink(missing_ok=True)
                    path.write_bytes(content)
                elif number % 4 == 2:
                    (folder / "other").write_bytes(content[::-1])
                    (folder / "other").replace(path)
                else:
                    path.write_bytes(content[:number * 91 % len(content)] + content)
            except OSError:
                pass
            time.sleep(0.001)

    writer = threading.Thread(target=change)
    writer.start()
    n = counted(ROUNDS, share, 12)
    for _ in range(n):
        try:
            events = read(SourceFile(path, path.name)).events
            strange = [text for text in events["content"].drop_nulls() if not (text == "hi" or text.startswith("text "))]
            problems += [f"{text[:60]!r} is read" for text in strange[:1] if "\ufffd" not in text and '"' not in text]
        except (TraceroomError, OSError):
            pass
        except Exception as error:
            problems.append(f"{type(error).__name__}: {str(error)[:200]}")
    stopped.set()
    writer.join()
    return Report(n, tuple(problems[:5]))


def test_a_log_may_change_while_it_is_read(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
