"""How many names one notion has, over what people see of a real build: rendered pages, tables, and what commands print.

`measure(out)` reads a folder that a run wrote. Surfaces: every kind of page of the browser (crawled from `/` along its own
links) and the report; the schema of DuckDB with comments, views and the values of columns that take few; commands' output and
help. What a log says is no word of ours: text in `pre`, `code`, `q` and `.words`, and text that stands in the log, is left
out. A name counts for a notion if it is used in that sense: each pattern of `NAMES` says in which context. Does not see words
in pictures.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from warehouse.store import Store
from warehouse.vocabulary import DEFINITIONS

ROOT = Path(__file__).resolve().parent.parent
_CASE = r"(?:sessions?|episodes?|attempts?|runs?|outcomes?|ones?)"
_ROW = r"(?:rows?|records?|lines?|sessions?|tasks?|files?|candidates?)"
NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    "succeeded": {
        "succeed": (r"succe(?:ss|ed)\w*",), "good": (r"\bgood\b", r"\bn_good\b|_good\b|\bgood_"),
        "well": (r"\b(?:went|go|goes|gone) well\b",), "ok": (rf"\b{_CASE} (?:is|are|was|were) ok\b",),
        "pass": (rf"\b{_CASE}(?: that| which)? pass(?:ed|es)?\b", rf"\bpassed {_CASE}"),
        "solve": (rf"\b{_CASE} (?:was |is )?solved", rf"\bsolved {_CASE}"), "positive": (r"\bpositive\b",),
        "right": (rf"\bright {_CASE}\b",), "achieve": (r"\bachieved?\b",)},
    "failed": {
        "fail": (r"fail(?:ed|s|ure|ures)?\b",), "bad": (r"\bbad(?:ly)?\b", r"\bn_bad\b|_bad\b|\bbad_"),
        "wrong": (r"\b(?:went|go|goes|gone) wrong\b",), "unsuccessful": (r"\bunsuccessful",),
        "negative": (rf"\bnegative {_CASE}",)},
    "undecided": {
        "undecided": (r"\bundecided\b",), "untold": (r"\buntold\b",), "no probability": (r"\bno probability\b",),
        "unjudged": (r"\bunjudged\b",), "open": (rf"\bopen {_CASE}",), "unclear": (r"\bunclear\b",),
        "not decided": (r"\bnot decided\b",), "inconclusive": (r"\binconclusive\b",)},
    "rejected": {
        "reject": (r"reject\w*",),
        "left": (rf"\b{_ROW} left\b", r"\bleft out\b", r"\bleft_as\b", r"\bwas left\b", r"\bleft now\b"),
        "drop": (rf"\bdropped {_ROW}|\b{_ROW} dropped",), "discard": (r"\bdiscard\w*",),
        "skip": (rf"\bskipped {_ROW}|\b{_ROW} skipped",), "refuse": (rf"\brefused {_ROW}|\b{_ROW} refused",),
        "exclude": (rf"\bexcluded {_ROW}|\b{_ROW} (?:were |was )?excluded",), "ignore": (rf"\bignored {_ROW}",)},
    "published": {
        "publish": (r"(?<!un)(?<!not )publish\w*",), "release": (r"\breleased tasks?",), "ship": (r"\bshipp?(?:ed|s)\b",),
        "verify": (r"\btasks? (?:is |are )?verified\b", r"\bverified tasks?", r"\b(?:is|n|each) verified\b"),
        "accept": (r"\baccepted tasks?|\btasks? accepted",)},
    "unverified": {
        "unverified": (r"\bunverified\b",), "not published": (r"\bnot published\b|\bunpublished\b",),
        "not verified": (r"\bnot verified\b", r"\bno verified reward\b"), "withhold": (r"\bwith(?:held|hold)\w*",),
        "quarantine": (r"\bquarantined tasks?",)},
    "split": {
        "split": (r"\bsplits?\b",), "fold": (r"\bfolds?\b",), "subset": (r"\bsubsets?\b",),
        "side": (r"\b(?:train|held.out|validation|split'?s?|other|several) sides?\b", r"\bsides? of (?:a|the|\S+ \S+'s) split",
                 r"\bon (?:one|another|two) sides?\b"),
        "partition": (r"\bpartition(?:s|ed)? of (?:the )?tasks",)},
    "task": {
        "task": (r"\btasks?\b",), "instance": (r"\binstances?\b",), "problem": (r"\bproblems? (?:to|that an agent)",),
        "exercise": (r"\bexercises?\b",), "challenge": (r"\bchallenges?\b",), "scenario": (r"\bscenarios?\b",)},
    "family": {
        "family": (r"\bfamil(?:y|ies)\b",), "cluster": (r"\bclusters?\b",), "category": (r"\bcategor(?:y|ies)\b",),
        "intent": (r"\bintents?\b",), "kind": (r"\bkinds? of (?:requests?|tasks?|things?|work)\b",),
        "class": (r"\bclass(?:es)? of (?:tasks|requests)",)},
    "read": {
        "read": (r"\breads?\b",), "look": (r"\blooks?\b(?!-)(?! (?:at|for|like|it|before|whether|you)\b)", r"\blook-?ups?\b"),
        "query": (r"\bquery (?:call|tool)s?",), "fetch": (r"\bfetch(?:es|ed)?\b",), "getter": (r"\bgetters?\b",)},
    "write": {
        "write": (r"\bwrit(?:e|es|ing|ten)\b",),
        "act": (r"\ban acts?\b|\bthe acts?\b|\bacting (?:tool|call)|\bacts\b",),
        "mutation": (r"\bmutat(?:ion|ing)\w* (?:call|tool)",), "side effect": (r"\bside effects?\b",),
        "action": (r"\bwriting actions?\b",), "update": (r"\bupdate calls?\b",), "change": (r"\bchanging (?:call|tool)s?\b",)}}
"""Notion -> name -> where it is used for the notion."""
MOST_EXAMPLES = 12
PER_PAGE = 3
"""Pages of each kind that are read."""
_SILENT, _OF_LOGS = ("script", "style"), ("pre", "code", "q", "textarea")
_VOID = ("meta", "link", "input", "br", "img", "hr")
_SPOKEN = ("title", "aria-label", "placeholder", "alt")
VALUED = (
    ("mart.decisions", "stage"), ("mart.decisions", "reason"), ("mart.tasks", "split"), ("sessions", "outcome"),
    ("mart.behaviours", "effect"), ("mart.variants", "made_from"), ("mart.datasets", "kind"), ("mart.tasks", "difficulty_band"),
    ("mart.signals", "side"), ("mart.signals", "signal"))
"""Columns whose values are words of ours."""


class _Texts(HTMLParser):
    """Gathers a page's links, and its words that are not a log's."""

    def __init__(self) -> None:
        super().__init__()
        self.texts, self.links, self._open = list[str](), list[str](), list[tuple[str, bool]]()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note a link and what is spoken of an element."""
        own = {name: value or "" for name, value in attributes}
        if tag == "a":
            self.links.append(own.get("href", ""))
        hidden = self._is_hidden() or tag in (*_SILENT, *_OF_LOGS) or "words" in own.get("class", "").split()
        self.texts += [own[name] for name in _SPOKEN if own.get(name) and not hidden]
        if tag not in _VOID:
            self._open.append((tag, hidden))

    def handle_endtag(self, tag: str) -> None:
        """Leave an element."""
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        """Note text."""
        if data.strip() and not self._is_hidden():
            self.texts.append(" ".join(data.split()))

    def _is_hidden(self) -> bool:
        return bool(self._open) and self._open[-1][1]


def measure_part(out: Path | None) -> dict[str, Any]:
    """Measure a run's folder, or one made from the sample, in which two policies have played."""
    if out is not None:
        return measure(out.resolve())
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / "out"
        commands = [["run", "--no-image", "tests/logs/airline", "--out", str(made)], *(
            ["rollout", str(made / "environments" / "main"), "--policy", policy] for policy in ("oracle", "replay"))]
        for command in commands:
            subprocess.run([sys.executable, "-P", "-m", "pipelines", *command], check=True, capture_output=True, cwd=ROOT)
        return measure(made)


def measure(out: Path, commands: bool = True) -> dict[str, Any]:
    """Return {"vocabulary", "names": notion -> name -> an example} over the surfaces of a run's folder."""
    with Store.published(out / "warehouse.duckdb") as store:
        own, tables = _log_words(store), list(_of_tables(store))
    pages = [(place, text) for place, text in _of_pages(out) if text.lower() not in own]
    printed = list(_of_commands(out, own)) if commands else []
    return count([*pages, *tables, *printed])


def count(texts: list[tuple[str, str]]) -> dict[str, Any]:
    """Return how many names each notion has in (place, text), and where the others stand."""
    assert NAMES.keys() == DEFINITIONS.keys(), "the vocabulary and its benchmark name other notions"
    names: dict[str, list[str]] = {}
    others: dict[str, list[str]] = {}
    for notion, own in NAMES.items():
        used = {name: [f"{place}: …{text[max(0, at.start() - 50):at.end() + 50]}…" for place, text in texts
                       for at in [re.search("|".join(patterns), text, re.I)] if at] for name, patterns in own.items()}
        names[notion] = sorted(name for name, places in used.items() if places)
        others |= {f"{notion}: {name}": sorted(set(places))[:MOST_EXAMPLES] for name, places in used.items()
                   if places and name != next(iter(own))}
    return {"vocabulary": max(map(len, names.values())), "names": names, "others": others}


def _log_words(store: Store) -> str:
    """Return all that a log says, in one text, as a page would write it."""
    queries = (
        "select distinct content from core.turns", "select distinct arguments from core.turns", "select goal from mart.goals",
        "select name from mart.names", "select sentence from mart.names", "select sentence from mart.sentences",
        "select goal from mart.tasks", "select description from core.tools", "select value from core.feedback")
    texts = (store.read(query).to_series().drop_nulls() for query in queries)
    return "\n".join(" ".join(str(value).split()) for own in texts for value in own).lower()


def _of_pages(out: Path) -> Iterator[tuple[str, str]]:
    from starlette.testclient import TestClient

    from pipelines.browser.app import application
    from pipelines.browser.guard import AccessGuard

    token, counts, waiting, known = "a token of the benchmark", dict[tuple[str, ...], int](), ["/"], {"/"}
    with TestClient(application(out, AccessGuard(token, False)), base_url="http://127.0.0.1") as client:
        client.get("/enter", params={"token": token})
        while waiting:
            path = waiting.pop(0)
            answer = client.get(path)
            if "text/html" not in answer.headers.get("content-type", ""):
                continue
            page = _Texts()
            page.feed(answer.text)
            yield from ((path, text) for text in page.texts)
            for link in page.links:
                parts = urlsplit(link)
                kind = parts.path, *sorted(name for name, _ in parse_qsl(parts.query) if name not in ("after", "step"))
                bare = link.partition("#")[0]
                if link.startswith("/") and bare not in known and counts.get(kind, 0) < PER_PAGE:
                    counts[kind] = counts.get(kind, 0) + 1
                    known.add(bare)
                    waiting.append(bare)


def _of_tables(store: Store) -> Iterator[tuple[str, str]]:
    columns = store.read(
        "select schema_name || '.' || table_name as t, column_name as c, comment, data_type from duckdb_columns() "
        "where not internal and schema_name in ('raw', 'core', 'mart', 'main') order by all").to_dicts()
    for row in columns:
        yield f"{row['t']}.{row['c']}", row["c"].replace("_", " ")
        yield f"{row['t']}.{row['c']}, comment", row["comment"] or ""
    for table in sorted({row["t"] for row in columns}):
        yield table, table.partition(".")[2].replace("_", " ")
    commented = store.read(
        "select schema_name || '.' || table_name as t, comment from duckdb_tables() where comment is not null").to_dicts()
    for row in commented:
        yield f"{row['t']}, comment", row["comment"]
    for table, column in VALUED:
        for value in store.read(f"select distinct {column} from {table} where {column} is not null").to_series():
            yield f"{table}.{column}, value", str(value).replace("_", " ")


def _of_commands(out: Path, own: str) -> Iterator[tuple[str, str]]:
    rooms = sorted(path.parent for path in (out / "environments").glob("*/manifest.json"))
    calls = [["show", "--out", str(out)], ["show", "--out", str(out), "--rejected"], ["show", "--out", str(out), "--families"],
             ["show", "--out", str(out), "--services"], ["coverage", "--out", str(out)], ["review", str(out)],
             ["report", "--out", str(out)], *([["tasks", str(rooms[0])]] if rooms else [])]
    for call in calls:
        done = subprocess.run([sys.executable, "-P", "-m", "pipelines", *call], capture_output=True, text=True, timeout=300,
                              env={**os.environ, "COLUMNS": "400", "NO_COLOR": "1", "TERM": "dumb"})
        yield from _lines(call[0], f"{done.stdout}\n{done.stderr}", own)
    yield from _help(own)


def _help(own: str) -> Iterator[tuple[str, str]]:
    import typer

    from pipelines.cli import app

    group = typer.main.get_command(app)
    for name, command in sorted(getattr(group, "commands", {}).items()):
        texts = [command.help or "", *(getattr(option, "help", None) or "" for option in command.params)]
        yield from _lines(f"{name} --help", "\n".join(texts), own)


def _lines(name: str, printed: str, own: str) -> Iterator[tuple[str, str]]:
    for line in printed.splitlines():
        text = " ".join(line.split())
        if text and text.lower() not in own:
            yield f"traceroom {name}", text
