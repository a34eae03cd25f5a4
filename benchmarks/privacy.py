#!/usr/bin/env python3
"""How much of planted people is found, what is left of them in what is published, what it costs, and what it breaks.

    benchmarks/privacy.py DATA [--only PART …] [--people 300] [--rounds 3] [--sample N] [--built OFF ON]

Seeded people (names, e-mail, telephone, card, address, id, key) are planted into conversations beside a copy of DATA's logs:
half stand in fields of a tool's results and in texts, half in texts alone; some are re-cased or misspelt. PART:

    recall      `recall_structured`, `recall_unstructured`: share of the planted values of which no stored text of a warehouse
                into which all was read holds the original; `privacy_cost`: seconds of reading with privacy over those without,
                median over rounds
    published   all is run and released; `originals_left`: planted values of fields, and e-mail addresses of DATA's logs, that
                a byte search finds in anything below OUT, inside databases, Parquet and images too (privacy_published.py);
                `n_originals` sought; `n_releases`: 0 where a gate refused it
    fidelity    (not by default; DATA with truth/probes.jsonl) figures of benchmarks/fidelity.py without pseudonyms and with
                them, and `fidelity_difference` (privacy_fidelity.py); --sample N: of N sessions; --built: two runs made before

The key is TRACEROOM_KEY, else one for measuring alone. The last line on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from privacy_fidelity import fidelity
from privacy_published import left_in

from pipelines.ingesting import ingest
from pipelines.releases.registry import Registry
from pipelines.releases.releasing import release
from pipelines.running import run
from pipelines.settings import Settings
from warehouse.lock import writing
from warehouse.store import Store

PARTS = ("recall", "published", "fidelity")
_MAIL = re.compile(rb"[A-Za-z][\w.+-]*@[\w-]+(?:\.[\w-]+)+")
_BEGIN = ("ka", "lo", "mi", "ren", "sha", "tor", "vel", "yas", "bri", "den", "far", "gwi")
_MIDDLE = ("ri", "na", "do", "le", "vo", "shi", "ma", "ta", "be", "lu")
_END = ("ck", "ston", "va", "rez", "wyn", "dal", "ova", "mir", "gard", "sson")


def main() -> int:
    """Plant, measure each part, and print the figures."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("data", type=Path)
    asked.add_argument("--only", nargs="+", choices=PARTS, default=PARTS[:2])
    asked.add_argument("--people", type=int, default=300)
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--sample", type=int)
    asked.add_argument("--built", type=Path, nargs=2, default=[])
    told = asked.parse_args()
    os.environ.setdefault("TRACEROOM_KEY", "a key for measuring alone")
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        logs = scratch / "logs"
        shutil.copytree(told.data, logs, ignore=shutil.ignore_patterns("truth"))
        planted = _plant(logs, told.people)
        if "recall" in told.only:
            figures |= _recall(logs, scratch, planted, told.rounds)
        if "published" in told.only:
            figures |= _published(logs, scratch / "published", planted)
        if "fidelity" in told.only:
            figures |= fidelity(told.data.resolve(), scratch, told.built, told.sample)
    print(json.dumps({"benchmark": "privacy", "data": told.data.resolve().name,
                      "figures": {name: round(value, 4) for name, value in figures.items()}}))
    return 0


def _recall(logs: Path, scratch: Path, planted: dict[str, list[tuple[str, str]]], n_rounds: int) -> dict[str, float]:
    on, off = [], []
    for number in range(n_rounds):
        off.append(_read(logs, scratch / f"off{number}", False))
        on.append(_read(logs, scratch / f"on{number}", True))
    cost = statistics.median(one / other for one, other in zip(on, off, strict=True))
    return {**_figures(scratch / "on0", planted), "privacy_cost": cost}


def _published(logs: Path, out: Path, planted: dict[str, list[tuple[str, str]]]) -> dict[str, float]:
    """Run and release, as a person does, and search all of it."""
    settings = Settings(logs=(str(logs),), out=str(out), privacy=True).checked()
    run(settings)
    released = release(settings, Registry(str(settings.releases)), "a benchmark", "a benchmark")
    print(f"release: {released.state}; red: {[each.gate for each in released.judged if each.red]}", file=sys.stderr)
    mails = {each.decode() for path in logs.rglob("*") if path.is_file() for each in _MAIL.findall(path.read_bytes())}
    originals = {value for _, value in planted["structured"]} | mails
    found = left_in(out, originals)
    for name, values in list(found.items())[:20]:
        print(f"{name}: {values[:5]}", file=sys.stderr)
    return {"originals_left": len({value for values in found.values() for value in values}), "n_originals": len(originals),
            "n_releases": int(released.release is not None)}


def _person(draw: random.Random) -> dict[str, str]:
    first, last = ("".join(draw.choice(part) for part in (_BEGIN, _MIDDLE, _END)).title() for _ in range(2))
    number = f"{draw.randrange(10**9):09}"
    card = f"4{draw.randrange(10**14):014}"
    check = next(digit for digit in range(10) if _luhn(f"{card}{digit}"))
    return {
        "full_name": f"{first} {last}", "email": f"{first}.{last}{number[:3]}@{draw.choice(('gmail.com', 'corp.io'))}".lower(),
        "phone": f"+1 ({draw.randrange(200, 999)}) {draw.randrange(200, 999)}-{number[:4]}", "card_number": f"{card}{check}",
        "address1": f"{draw.randrange(100, 9999)} {last[:5]} Lane", "user_id": f"{first}_{last}_{number[:4]}".lower(),
        "api_key": f"sk-proj-{draw.getrandbits(160):040x}"}


def _luhn(digits: str) -> bool:
    numbers = [int(sign) for sign in digits]
    return (sum(sum(divmod(2 * each, 10)) for each in numbers[-2::-2]) + sum(numbers[-1::-2])) % 10 == 0


def _session(number: int, said: list[str], result: str) -> str:
    call = {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": '{"q": 1}'}}
    return json.dumps({"id": f"planted{number}", "messages": [
        {"role": "user", "content": said[0]}, {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": result},
        *({"role": "user", "content": text} for text in said[1:]), {"role": "assistant", "content": "Done."}]})


def _plant(logs: Path, n: int) -> dict[str, list[tuple[str, str]]]:
    """Write the planted sessions; gives (kind, original) of what stands in fields, and in texts alone."""
    draw, lines = random.Random(7), []
    planted: dict[str, list[tuple[str, str]]] = {"structured": [], "unstructured": []}
    for number in range(n):
        person, in_fields = _person(draw), number % 2 == 0
        name = person["full_name"]
        last = name.split()[1]
        wrong = last[:3] + last[4:]
        said = [f"Hi, my name is {name}, order 7 please.", f"Write to {person['email']} or call {person['phone']}.",
                f"Pay with {person['card_number']}, send it to {person['address1']}.", f"use {person['api_key']}",
                f"that was {name.upper()}, also {last.lower()}", f"Is {wrong} on the list?"]
        lines.append(_session(number, said, json.dumps(person if in_fields else {"ok": True})))
        side = "structured" if in_fields else "unstructured"
        planted[side] += [(kind, value) for kind, value in person.items() if in_fields or kind != "user_id"]
        planted["unstructured"].append(("misspelt", wrong))
        planted["unstructured"].append(("recased", name.upper()))
    (logs / "planted.jsonl").write_text("\n".join(lines) + "\n")
    return planted


def _read(logs: Path, out: Path, private: bool) -> float:
    """Seconds of reading into an empty warehouse."""
    settings = Settings(logs=(str(logs),), out=str(out), privacy=private)
    out.mkdir()
    began = time.perf_counter()
    with writing(settings.warehouse, "a benchmark"), Store.open(settings.warehouse) as store:
        ingest(store, settings)
    return time.perf_counter() - began


def _figures(out: Path, planted: dict[str, list[tuple[str, str]]]) -> dict[str, Any]:
    with Store.open(out / "warehouse.duckdb", write=False) as store:
        rows = store.read("select content, arguments, value, name, session_id, tool from core.events")
    text = "\n".join(each for name in rows.columns for each in rows[name].drop_nulls().unique())
    figures: dict[str, Any] = {}
    for side, values in planted.items():
        left = [(kind, value) for kind, value in values if value in text]
        figures[f"recall_{side}"] = 1 - len(left) / len(values)
        for kind in sorted({kind for kind, _ in left}):
            print(f"{side}: {kind}: {[value for each, value in left if each == kind][:5]}", file=sys.stderr)
    return figures


if __name__ == "__main__":
    sys.exit(main())
