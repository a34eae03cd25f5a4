"""An agent's socket to its tools as a way to the host: its methods, other episodes, broken lines, its own output; the tools
alone answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from env_builder import image
from tests.attacks.report import Report
from tests.env_builder.test_escape import ASK
from tests.rooms import OPEN, TASK, write_room


def attack(folder: Path, share: float) -> Report:
    """Ask by the socket, and past it, for what is the host's; while another episode runs in the same room."""
    room = write_room(folder / "hall")
    image.make_base() if not image.engine().images.list(image.LOCAL_BASE) else None
    made = image.build(room, image.LOCAL_BASE)
    assert made.image_id, made.skip_reason
    problems = []
    with image.start(room, TASK, image_id=made.image_id) as process, image.agent(process, image.LOCAL_BASE) as agent:
        about = {"_meta": {"traceroom/episode": "another's"}}
        process.request("traceroom/reset", {**process.reset_params(TASK), **about})
        done = agent.run(["python3", "-c", ASK], timeout_s=200)
        assert done.exit_code == 0, done.stderr.decode()[-500:]
        result = json.loads(done.stdout)
        problems += [f"the host's methods give {result['asked']}"] if set(result["asked"]) != {-32601} else []
        problems += [f"broken lines give {result['garbage']}"] if any(code >= 0 for code in result["garbage"]) else []
        problems += [f"its own call gives {result['acted'][:80]}"] if result["acted"] != OPEN else []
        others = process.request("traceroom/journal", about)["journal"]
        problems += [f"another's episode has {len(others)} steps"] if others else []
        own = [row.get("tool") for row in process.journal()]
        problems += [f"its journal is {own}"] if own != ["open_door"] else []
    return Report(len(result["asked"]) + len(result["garbage"]) + 3, tuple(problems))


@pytest.mark.slow
def test_the_way_to_the_tools_leads_nowhere_else(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
