"""Agents that fork, write, fill memory and shout without end: their container alone suffers, the room answers, and the grade
stands."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from env_builder import image
from env_builder.runtime import Environment
from tests.attacks.report import Report
from tests.env_builder.test_escape import BOMB, FILL
from tests.rooms import OPEN, TASK, write_rewards, write_room


def attack(folder: Path, share: float) -> Report:
    """Let an agent do each, and after each solve the task from outside."""
    room = write_room(folder / "out" / "environments" / "hall")
    write_rewards(room)
    image.make_base() if not image.engine().images.list(image.LOCAL_BASE) else None
    made = image.build(room, image.LOCAL_BASE)
    assert made.image_id, made.skip_reason
    floods = {"forks": BOMB, "files": FILL, "memory": "x = bytearray(4 << 30)",
        "output": "import os\nfor _ in range(200): os.write(1, b'x' * (1 << 20))",
              "files open": "import os\nl = [os.open('/dev/null', 0) for _ in range(10 ** 6)]",
              "names": "import os\nfor n in range(10 ** 6): open(f'/work/{n}', 'w').close()",
              "processors": "import time\nwhile time.time() % 60 < 70: pass",
              "sockets": "import socket\nl = [socket.socketpair() for _ in range(10 ** 6)]"}
    problems = []
    for name, program in floods.items() if share >= 0.1 else list(floods.items())[:5]:
        with image.start(room, TASK, image_id=made.image_id) as process, image.agent(process, image.LOCAL_BASE) as agent:
            done = agent.run(["python3", "-c", program], timeout_s=20 if name == "processors" else 120)
            begun = time.monotonic()
            process.say("Which door?")
            problems += [] if process.call("open_door",
                {"door": "7"}).content == OPEN else [f"{name}: the room does not answer"]
            problems += [f"{name}: the room takes {time.monotonic() - begun:.0f} s"] if time.monotonic() - begun > 60 else []
            problems += [f"{name}: {len(done.stdout) >> 20} MB of output are kept"] if len(done.stdout) > 2 << 20 else []
            reward = Environment.load(room).grade_journal(TASK, process.journal()).reward
            problems += [] if reward == 1.0 else [f"{name}: the grade is {reward}"]
    return Report(len(floods), tuple(problems))


@pytest.mark.slow
def test_a_flood_stays_in_its_container(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
