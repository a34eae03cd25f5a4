"""SQLite files of a few kilobytes whose columns are computed, or whose tables read a view without end."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tests.attacks.logs import read_log
from tests.attacks.report import Report

BASE = "create table messages (role text, content text, session_id text);"
ROWS = "".join(f"insert into messages (role, content, session_id) values ('user', 'hello {n}', 's{n}');" for n in range(20))
HOSTILE = {
    "zeros": "alter table messages add column waste as (hex(zeroblob(20000000)));",
    "slow": "alter table messages add column waste as (length(replace(hex(zeroblob(8000000)), '0', '11')));",
    "wide": "".join(f"alter table messages add column w{n} as (zeroblob(1000000));" for n in range(20))}
ENDLESS = """
create view feed as with recursive n(x) as (select 1 union all select x + 1 from n) select x as rowid, 1 as content from n;
create virtual table endless using fts5(content, content='feed', content_rowid='rowid');"""
SCRIPTS = ("create trigger t after insert on messages begin select load_extension('/tmp/evil.so'); end;",
           "create view v as select readfile('/etc/passwd');", ENDLESS)


def database(path: Path, script: str) -> Path:
    """Write a database of messages."""
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.executescript(BASE + ROWS + script)
    connection.commit()
    connection.close()
    return path


def attack(folder: Path, share: float) -> Report:
    """Read each database, and hold time and memory against those of an honest one."""
    problems = []
    for name, script in HOSTILE.items():
        log = read_log(database(folder / "log.sqlite", script), folder / "log.sqlite")
        problems += [f"{name} takes {log.peak_mb:.0f} MB"] if log.peak_mb > 100 else []
        problems += [f"{name} takes {log.seconds:.1f} s"] if log.seconds > 5 else []
    for script in SCRIPTS if share >= 0.1 else SCRIPTS[:2]:
        log = read_log(database(folder / "log.sqlite", script), folder / "log.sqlite")
        problems += [f"{script[:40]}: {log.peak_mb:.0f} MB"] if log.peak_mb > 1500 else []
        problems += [f"{script[:40]}: {log.seconds:.0f} s"] if log.seconds > 60 else []
        problems += [f"{script[:40]}: a file of this machine is read"] if "root:" in str(log.texts) else []
    return Report(len(HOSTILE) + len(SCRIPTS), tuple(problems))


def test_a_database_computes_nothing_while_it_is_read(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
