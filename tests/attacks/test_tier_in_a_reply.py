"""A reply that tells an agent whether its call is the recorded one: beside the answer, all ways look alike."""

from __future__ import annotations

import json
from pathlib import Path

from tests.attacks.report import Report
from tests.attacks.servers import HttpClient, command, rows
from tests.rooms import TASK, write_room

CALLS = (("read_sign", '{"at": "gate"}'), ("open_door", '{"door": "7"}'), ("open_door", '{"door": "8"}'),
         ("read_sign", '{"at": "roof"}'))


def attack(folder: Path, share: float) -> Report:
    """Make recorded calls and others, and hold what a reply shows beside its answer against its tier in the journal."""
    room, journals = write_room(folder / "hall"), folder / "journals.jsonl"
    with command("serve", room, "--task", TASK, "--journals", journals) as server, HttpClient(server) as agent:
        agent.open_session()
        replies = [agent.call(tool, arguments) for tool, arguments in CALLS]
        agent.send("DELETE", "/mcp")
    shown = {json.dumps([sorted(reply.headers), sorted(reply.json["result"].keys() - {"structuredContent"}),
                         reply.json["result"]["_meta"]], sort_keys=True) for reply in replies}
    tiers = [step["tier"] for step in rows(journals)[0]["journal"]]
    assert len(set(tiers)) > 1, tiers
    problems = [f"replies differ beside their answers: {sorted(shown)}"] if len(shown) > 1 else []
    problems += [f"a reply names the tier {tier!r}" for tier, reply in zip(tiers, replies, strict=True)
                 if f'"{tier}"'.encode() in reply.body]
    return Report(len(CALLS), tuple(problems))


def test_a_reply_does_not_tell_the_recorded_way(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
