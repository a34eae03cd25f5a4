"""A tool that acts outside: its call counts as an act, and hides nothing of what tools show."""

from __future__ import annotations

from pathlib import Path

from env_builder.runtime import Environment
from env_builder.runtime.canonical import canonical
from tests.rooms import TASK, write_room


def test_a_message_sent_is_an_act_that_hides_nothing(tmp_path: Path) -> None:
    room = write_room(tmp_path / "house")
    said = {"rule": "constant", "content": "Sent."}
    seen = {}
    for effect, rules in {"outside": [said], "unknown": []}.items():
        programs = [
            {"tool": "open_door", "effect": "write", "rules": [{"rule": "recorded"}], "support": {}},
            {"tool": "read_sign", "effect": effect, "rules": [{"rule": "recorded"}, *rules], "support": {}}]
        (room / "behaviour.jsonl").write_text("".join(canonical(row) + "\n" for row in programs))
        env = Environment.load_room(room)
        env.reset(TASK)
        sent = env.call("read_sign", {"at": "ann@example.org", "about": "7"})
        seen[effect] = (sent.tier, env.call("open_door", {"door": "7"}).tier, env.difference()["write_calls"])
    act = ["read_sign", canonical({"at": "ann@example.org", "about": "7"})]
    assert seen["outside"] == ("derived", "recorded", [act])
    assert seen["unknown"] == ("unknown", "unknown", []), "what an unanswered act may have touched is unknown"
