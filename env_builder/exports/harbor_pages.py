"""The texts of a Harbor task: its task.toml, its instruction, its containers' Dockerfiles; and the dataset.toml over all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from env_builder.exports.kit import Kit
from env_builder.image import DEFAULT_BASE
from env_builder.layers import AGENT_USER, ROOM_USER

SCHEMA, DATASET_SCHEMA = "1.4", "1.0"
HOME, SOCKET, JOURNAL = "/opt/traceroom", "/run/room/tools.sock", "/journal/journal.json"
SECONDS_PER_STEP = 30
INSTRUCTION = """\
{words}

---

Your tools are those of the service, not of this machine:

- `python3 /tools/tools.py list` names them, `python3 /tools/tools.py call NAME '{{"argument": "value"}}'` calls one
- `python3 /tools/tools.py say "TEXT"` says something to the person who asked, and prints the answer
- any MCP client has the same tools over stdio: `python3 /tools/tools.py mcp`

What counts is what you change by these tools and what you tell the person; files here count for nothing.
"""
RUN = """\
    harbor lint */
    harbor run -p . -a oracle        # 1 in every task
    harbor run -p . -a nop           # 0 in every task

Agent and verifier have containers of their own, without a network. Their base is pinned by digest; where no registry is
reached, build with another: `--build-arg BASE=NAME` (any image with `python3` 3.11 or newer and a shell).
"""
AGENT = """\
ARG BASE={base}
FROM ${{BASE}}
RUN mkdir -p {home} /journal /run/room /work /tools \\
 && chown {room}:{room} {home} /journal /run/room && chmod 700 {home} /journal && chmod 755 /run/room \\
 && chown {agent}:{agent} /work \\
 && find / -xdev -type f -perm -4000 -exec chmod u-s {{}} +
COPY tools.py /tools/tools.py
COPY --chown={room}:{room} room {home}/room
COPY --chown={room}:{room} kit.json play.py harbor_room.py {home}/
COPY --chown={room}:{room} task/tasks.jsonl {home}/room/tasks.jsonl
ENV TOOLS_SOCKET={socket}
WORKDIR /work
"""
VERIFIER = """\
ARG BASE={base}
FROM ${{BASE}}
COPY room {home}/room
COPY kit.json play.py harbor_grade.py {home}/
COPY task/tasks.jsonl {home}/room/tasks.jsonl
COPY task/rubrics.jsonl {home}/grader/rubrics.jsonl
COPY test.sh /tests/test.sh
"""
TEST = f"""\
#!/bin/sh
exec python3 -I -S -B {HOME}/harbor_grade.py {JOURNAL} /logs/verifier
"""
SOLVE = """\
#!/bin/sh
exec python3 -I -S -B /solution/harbor_solve.py
"""


def dockerfiles() -> tuple[str, str]:
    """Of the agent's container, of the verifier's."""
    names = {"base": DEFAULT_BASE, "home": HOME, "room": ROOM_USER, "agent": AGENT_USER, "socket": SOCKET}
    return AGENT.format(**names), VERIFIER.format(**names)


def task_toml(kit: Kit, organisation: str, name: str, task: Mapping[str, Any]) -> str:
    """The task's configuration."""
    seconds = float(min(task["limits"]["seconds"], SECONDS_PER_STEP * task["limits"]["steps"]))
    ours = {"digest": kit.digest, "environment": kit.name, "task_id": task["task_id"], "family": task["family"],
            "split": task["split"], "content_digest": kit.figures["content_digest"],
            "rewards_digest": kit.figures["rewards_digest"]}
    return "\n".join([
        f"schema_version = {_value(SCHEMA)}",
        "", "[[artifacts]]", f"source = {_value(JOURNAL)}", 'destination = "journal.json"',
        "", "[task]", f"name = {_value(f'{organisation}/{name}')}", f"description = {_value(str(task['goal'])[:500])}",
        'keywords = ["tools", "conversation"]',
        "", "[metadata.traceroom]", *(f"{key} = {_value(value)}" for key, value in ours.items()),
        "", "[agent]", f"timeout_sec = {seconds}", f"user = {AGENT_USER}",
        "", "[verifier]", "timeout_sec = 600.0", 'environment_mode = "separate"',
        "", "[verifier.environment]", 'network_mode = "no-network"', "cpus = 1", "memory_mb = 1024",
        "", "[environment]", 'network_mode = "no-network"', "cpus = 1", "memory_mb = 1024", 'workdir = "/work"',
        "", "[environment.env]", f"TOOLS_SOCKET = {_value(SOCKET)}",
        "", "[environment.healthcheck]", f"command = {_value(f'python3 -I -S -B {HOME}/harbor_room.py start')}",
        "interval_sec = 1.0", "timeout_sec = 150.0", "start_period_sec = 0.0", "retries = 3",
        "", "[[environment.mcp_servers]]", 'name = "room"', 'transport = "stdio"', 'command = "python3"',
        'args = ["/tools/tools.py", "mcp"]', ""])


def dataset(kit: Kit, organisation: str, tasks: Mapping[str, str]) -> str:
    """The dataset's manifest; `tasks`: digest by name."""
    about = f"The service {kit.name}, as it was found in logs: {len(tasks)} tasks."
    lines = [
        f"schema_version = {_value(DATASET_SCHEMA)}", "", "[dataset]", f"name = {_value(f'{organisation}/{kit.name}')}",
        'version = "0.1.0"', f"description = {_value(about)}", 'keywords = ["tools", "conversation"]',
        "", "[metadata.traceroom]", f"digest = {_value(kit.digest)}"]
    for name, digest in sorted(tasks.items()):
        lines += ["", "[[tasks]]", f"name = {_value(name)}", f"digest = {_value(digest)}"]
    return "\n".join([*lines, ""])


def _value(value: Any) -> str:
    """A text or number as TOML writes it: JSON's text, with DEL escaped too."""
    return json.dumps(value, ensure_ascii=True).replace("\x7f", "\\u007f")
