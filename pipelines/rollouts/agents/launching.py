"""Start an agent for an episode, wait for it, and end it: a command as a process, or a service at a URL.

In: what the agent is given (`AgentBriefing`). Out: how it ended. A process is of a session of its own and is ended with its
children; of what it prints, only the end is read. The agent runs as the user who rolls out: it is trusted.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple

from pipelines.rollouts.agents.adapters import preloaded
from pipelines.rollouts.orders import AgentCommand
from warehouse.errors import InputError, PolicyFailed

TAIL = 8192
"""Bytes of the agent's output that are read at its end."""
LONGEST = 100_000
"""Bytes of the longest text that is given as a variable; the file of the task has all."""
POLL_S = 0.05
GRACE_S = 10.0
"""Seconds that an agent has to end by itself after its episode has ended."""
URLS = ("http://", "https://")
Row = dict[str, Any]


class AgentBriefing(NamedTuple):
    """What an agent is given of its episode."""

    url: str
    """The episode's own, with its secret."""
    about: Row
    """task_id, seed, attempt."""
    messages: list[Row]
    """What the episode begins with."""
    tools: list[Row]

    def document(self) -> Row:
        """Return all of it, as a service gets it and as the file of the task holds it."""
        key = self.url.rpartition("/")[2]
        return {**self.about, "prompt": self.prompt(), "system": self.system(), "messages": self.messages, "tools": self.tools,
                "openai_base_url": f"{self.url}/v1", "openai_api_key": key, "anthropic_base_url": self.url,
                "anthropic_api_key": key, "mcp_url": f"{self.url}/mcp", "episode_url": self.url}

    def prompt(self) -> str:
        """Return what the user says last."""
        return next((str(each["content"]) for each in reversed(self.messages) if each["role"] == "user"), "")

    def system(self) -> str:
        """Return what the system messages say."""
        return "\n\n".join(str(each["content"]) for each in self.messages if each["role"] == "system")

    def values(self, task_file: str) -> dict[str, str]:
        """Return the texts of placeholders and variables, without those that are too long for a process."""
        document = self.document()
        texts = {name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                 for name, value in document.items() if name != "tools"}
        return {name: value for name, value in {**texts, "task_file": task_file}.items()
                if len(value.encode("utf-8", "replace")) < LONGEST and "\0" not in value}


class AgentEnd(NamedTuple):
    """How an agent ended."""

    failure: str | None = None
    """What went wrong, in a sentence without a full stop."""


def check(agent: AgentCommand) -> None:
    """Raise InputError if the command can be no agent's."""
    if agent.command.startswith(URLS):
        if agent.adapters:
            raise InputError("a service loads adapters itself", "--adapter", "see docs/howto/agent.md")
        return
    try:
        words = shlex.split(agent.command)
    except ValueError as error:
        raise InputError(f"the agent's command cannot be read ({error})", agent.command, "quote it as for a shell") from error
    if not words:
        raise InputError("the agent has no command", "--agent", "write a command line or a URL")


def run(agent: AgentCommand, briefing: AgentBriefing, is_over: Callable[[], bool], is_stopped: Callable[[], bool]) -> AgentEnd:
    """Run the agent to its end: its own, or `GRACE_S` after the episode's, or that of its time. Raises PolicyFailed if it
    cannot be started."""
    deadline = _Deadline(agent.seconds, is_over, is_stopped)
    if agent.command.startswith(URLS):
        return _post(agent.command, briefing.document(), deadline)
    with tempfile.TemporaryDirectory(prefix="traceroom-agent-") as folder:
        return _run_command(agent, briefing, Path(folder), deadline)


class _Deadline:
    """When to wait no longer."""

    def __init__(self, seconds: float, is_over: Callable[[], bool], is_stopped: Callable[[], bool]) -> None:
        self._ends_at = time.monotonic() + seconds
        self.seconds = seconds
        self._is_over, self._is_stopped = is_over, is_stopped
        self._over_at: float | None = None

    def reason(self) -> str | None:
        """Return why to end the agent now, None if there is no reason yet."""
        now = time.monotonic()
        if self._over_at is None and self._is_over():
            self._over_at = now
        if self._is_stopped():
            return "the rollout was stopped"
        if self._over_at is not None and now > self._over_at + GRACE_S:
            return f"the agent ran on for {GRACE_S:g} seconds after its episode had ended"
        return f"the agent did not end within {self.seconds:g} seconds" if now > self._ends_at else None


def _run_command(agent: AgentCommand, briefing: AgentBriefing, folder: Path, deadline: _Deadline) -> AgentEnd:
    task_file, prompt_file = folder / "task.json", folder / "prompt.txt"
    task_file.write_text(json.dumps(briefing.document(), ensure_ascii=False), "utf-8", errors="replace")
    prompt_file.write_text(briefing.prompt(), "utf-8", errors="replace", newline="")
    values = briefing.values(str(task_file))
    words = [_filled(word, values) for word in shlex.split(agent.command)]
    try:
        with prompt_file.open("rb") as prompt:
            process = subprocess.Popen(words, stdin=prompt, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                       env=_variables(agent, values), start_new_session=True)
    except (OSError, ValueError) as error:
        raise PolicyFailed(f"the agent cannot be started ({error})", words[0], "check the command of --agent") from error
    assert process.stdout is not None
    tail = _Tail(process.stdout)
    try:
        reason = None
        while process.poll() is None and (reason := deadline.reason()) is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(POLL_S)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
    last = tail.closing_lines()
    if reason is not None:
        return AgentEnd(reason)
    if code == 0:
        return AgentEnd()
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    return AgentEnd(f"the agent {how}" + (f": {last}" if last else ""))


class _Tail:
    """Reads what a process prints, and keeps the end of it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._kept = stream, b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def closing_lines(self) -> str:
        """Return the last lines that say something: as many as 300 characters hold, one at least, cut to so many."""
        self._thread.join(1.0)
        lines = [line.strip() for line in self._kept.decode("utf-8", "replace").splitlines() if line.strip()]
        shown = ""
        for line in reversed(lines):
            if shown and len(line) + len(shown) > 300:
                break
            shown = f"{line} {shown}".strip()
        return shown[:300]

    def _read(self) -> None:
        with self._stream, contextlib.suppress(OSError, ValueError):
            while data := os.read(self._stream.fileno(), 65536):
                self._kept = (self._kept + data)[-TAIL:]


def _post(url: str, document: Row, deadline: _Deadline) -> AgentEnd:
    """Give a service the episode; it plays until it answers."""
    ends: list[AgentEnd] = []

    def post() -> None:
        request = urllib.request.Request(
            url, json.dumps(document).encode(), {"Content-Type": "application/json"}, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=deadline.seconds + GRACE_S) as reply:
                reply.read()
            ends.append(AgentEnd())
        except urllib.error.HTTPError as error:
            ends.append(AgentEnd(f"the agent answered with status {error.code}: {_first(error.read(300))}"))
        except (OSError, ValueError) as error:
            ends.append(AgentEnd(f"the agent does not answer ({error})"))

    thread = threading.Thread(target=post, daemon=True)
    thread.start()
    reason = None
    while thread.is_alive() and (reason := deadline.reason()) is None:
        thread.join(POLL_S)
    return ends[0] if ends else AgentEnd(reason or "the agent does not answer")


def _first(data: bytes) -> str:
    return " ".join(data.decode("utf-8", "replace").split())


def _filled(word: str, values: dict[str, str]) -> str:
    """Fill the placeholders that there are; other braces stay."""
    return re.sub(r"\{([a-z_]+)\}", lambda match: values.get(match[1], match[0]), word)


def _variables(agent: AgentCommand, values: dict[str, str]) -> dict[str, str]:
    """Return the environment of an agent's process: ours without our own settings and keys, and what its episode gives."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("TRACEROOM_")}
    theirs = {"task_id": "TRACEROOM_TASK_ID", "prompt": "TRACEROOM_PROMPT", "system": "TRACEROOM_SYSTEM",
              "messages": "TRACEROOM_MESSAGES", "task_file": "TRACEROOM_TASK_FILE", "mcp_url": "TRACEROOM_MCP_URL",
              "episode_url": "TRACEROOM_EPISODE_URL", "openai_base_url": "OPENAI_BASE_URL", "openai_api_key": "OPENAI_API_KEY",
              "anthropic_base_url": "ANTHROPIC_BASE_URL", "anthropic_api_key": "ANTHROPIC_API_KEY"}
    given = {variable: values[name] for name, variable in theirs.items() if name in values}
    given["OPENAI_API_BASE"] = given["OPENAI_BASE_URL"]
    local = {name: ",".join(filter(None, (own.get(name), "127.0.0.1,localhost"))) for name in ("NO_PROXY", "no_proxy")}
    return {**own, **given, **local, **preloaded(agent.adapters, own)}

