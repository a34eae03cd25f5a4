"""XML event logs with entities: a billion laughs, files of this machine, addresses of others, and depth without end."""

from __future__ import annotations

import http.server
import threading
from pathlib import Path

from tests.attacks.logs import SAMPLES, read_log
from tests.attacks.report import Report

LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10 if n else "ha"}">' for n in range(10))


def attack(folder: Path, share: float) -> Report:
    """Put each document type before a log that is otherwise read."""
    asked: list[str] = []

    class Listener(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)

    server = http.server.HTTPServer(("127.0.0.1", 0), Listener)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sample = next(path for path in sorted(SAMPLES.iterdir()) if path.name.startswith("xes")).read_text("utf-8")
    declaration, _, body = sample.partition("?>")
    first = body.index("value=\"") + len("value=\"")
    types = {
        "laughs": (LAUGHS, "&l9;"), "file": ('<!ENTITY x SYSTEM "file:///etc/passwd">', "&x;"),
        "address": (f'<!ENTITY x SYSTEM "http://127.0.0.1:{server.server_port}/x">', "&x;"),
        "parameter": (f'<!ENTITY % x SYSTEM "http://127.0.0.1:{server.server_port}/d"> %x;', "")}
    problems = []
    for name, (entities, used) in types.items():
        text = f"{declaration}?><!DOCTYPE log [{entities}]>{body[:first]}{used}{body[first:]}"
        log = read_log(text.encode(), folder / "log.xes")
        problems += [f"{name}: {log.peak_mb:.0f} MB, {log.seconds:.0f} s"] if log.peak_mb > 100 or log.seconds > 20 else []
        problems += [f"{name} is read: {log.texts[:1]}"] if not log.reasons else []
    deep = f"{declaration}?><log>{'<trace>' * 200_000}{'</trace>' * 200_000}</log>"
    log = read_log(deep.encode(), folder / "deep.xes")
    problems += [f"depth: {log.peak_mb:.0f} MB"] if log.peak_mb > 500 else []
    server.shutdown()
    server.server_close()
    return Report(len(types) + 1, (*problems, *(f"another machine was asked for {path}" for path in asked)))


def test_entities_are_not_resolved(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
