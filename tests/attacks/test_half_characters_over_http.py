"""Half an emoji in words, arguments, names and ids over HTTP: it costs no journal, and what ends by idleness still ends."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.attacks.report import Report
from tests.attacks.servers import PATIENCE_S, HttpClient, command, rows
from tests.rooms import TASK, write_room

HALVES = (r"\ud800", r"\udfff", r"ok \ud83d", r"\ude00\ud83d")


def attack(folder: Path, share: float) -> Report:
    """Send half characters wherever texts go; end half of the episodes by DELETE, and leave the others to the sweep."""
    kept, problems = folder / "journals.jsonl", []
    with command("serve", write_room(folder / "hall"), "--task", TASK, "--journals", kept, "--idle", "2") as server:
        for position, half in enumerate(HALVES):
            with HttpClient(server) as client:
                client.open_session()
                answers = [
                    client.send("POST", "/episode/say", f'{{"text": "{half}"}}'),
                    client.call("read_sign", f'{{"at": "{half}", "{half}": ["{half}"]}}'),
                    client.call(half, "{}"), client.call("say", f'{{"text": "{half}"}}'),
                    client.send("POST", "/mcp", f'{{"jsonrpc": "2.0", "id": "{half}", "method": "{half}"}}')]
                problems += [f"{half}: status {each.status}" for each in answers if each.status != 200]
                if position % 2 and (ended := client.send("DELETE", "/mcp").status) != 200:
                    problems.append(f"{half}: DELETE gave {ended}")
        with HttpClient(server) as client:
            until = time.monotonic() + PATIENCE_S
            while client.health()["episodes"] and time.monotonic() < until:
                time.sleep(0.2)
            health = client.health()
            problems += [f"{health} after all have ended"] if health["episodes"] or health["lost"] else []
    journals = [row["journal"] for row in rows(kept)]
    problems += [f"{len(journals)} of {len(HALVES)} journals"] if len(journals) != len(HALVES) else []
    problems += [f"a journal has {len(journal)} of 3 steps" for journal in journals if len(journal) != 3]
    return Report(5 * len(HALVES), tuple(problems))


@pytest.mark.slow
def test_half_characters_over_http_cost_no_journal(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
