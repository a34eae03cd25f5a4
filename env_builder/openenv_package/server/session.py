"""An environment as an OpenEnv server (HTTP and WebSocket), with the official package; who plays the episodes is passed in.

An action is `{"type": "call_tool", "tool_name", "arguments"}`, `{"type": "say", "text"}`, `{"type": "finish"}` or
`{"type": "list_tools"}`. `reset` takes `task_id`, or `split` and `index`, `seed` and `perturbations`; without a task the tasks
come in turn. A step is done when the episode has ended, by `finish` or by its limits, and then has the reward of the
environment's own grader; none if the reward is unknown. `/mcp` lists and calls the same tools.

Imports `openenv`, what it is built on, and the standard library alone: it is copied into every exported package.
"""

from __future__ import annotations

import functools
import re
import uuid
from collections.abc import Sequence
from typing import Any, Protocol

from fastapi.exceptions import RequestValidationError
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import ConcurrencyConfig, EnvironmentMetadata
from starlette.responses import JSONResponse

try:
    from ..models import OpenEnvAction, OpenEnvObservation, OpenEnvState
except ImportError:  # in an exported package's own folder, `server` is at the top
    from models import OpenEnvAction, OpenEnvObservation, OpenEnvState  # type: ignore[import-not-found,no-redef]


__all__ = ["Host", "HostedEpisode", "OpenEnvObservation", "OpenEnvSession", "create_app"]


class HostedEpisode(Protocol):
    """An episode that a host plays."""

    task_id: str | None
    messages: list[dict[str, Any]]
    """How it begins."""
    tools: list[dict[str, Any]]
    """MCP descriptors."""

    async def call(self, tool: str, arguments: dict[str, Any]) -> OpenEnvObservation:
        """Call a tool; an unknown tool is an error that the agent sees."""

    async def say(self, text: str) -> OpenEnvObservation:
        """Send a message to the user."""

    async def finish(self) -> OpenEnvObservation:
        """End the episode."""

    async def reward(self) -> float | None:
        """Return the grader's reward, None if it is unknown."""

    def close(self) -> None:
        """Give the episode up, from any thread."""


class Host(Protocol):
    """Plays the episodes of one environment."""

    name: str
    digest: str
    readme: str | None
    tasks: list[dict[str, Any]]
    """Rows with `task_id` and `split`."""

    async def begin(self, task_id: str | None, seed: int | None, perturbations: Sequence[str] | None) -> HostedEpisode:
        """Begin an episode; the host chooses what is None. An exception if there is no such task."""


class OpenEnvSession(Environment[Any, Any, Any]):
    """One session: an episode at a time."""

    SUPPORTS_CONCURRENT_SESSIONS = True
    REQUIRES_SINGLE_THREAD_EXECUTOR = True  # nothing here waits in a thread: one is enough for all sessions

    def __init__(self, host: Host) -> None:
        super().__init__()
        self._host = host
        self._episode: HostedEpisode | None = None
        self._state = OpenEnvState(digest=host.digest)

    @property
    def mcp_client(self) -> SessionTools:
        """Return what `/mcp` asks."""
        return SessionTools(self)

    async def reset_async(
        self, seed: int | None = None, episode_id: str | None = None, task_id: str | None = None, split: str | None = None,
        index: int | None = None, perturbations: Sequence[str] | None = None, **others: Any,
    ) -> OpenEnvObservation:
        """Begin an episode."""
        self.close()
        if task_id is None and split is not None:
            task_id = self.get_task(split, index or 0)["task_id"]
        episode = await self._host.begin(task_id, seed, perturbations)
        self._episode = episode
        self._state = OpenEnvState(
            episode_id=episode_id or str(uuid.uuid4()), task_id=episode.task_id, digest=self._host.digest)
        return OpenEnvObservation(messages=episode.messages, tools=episode.tools)

    async def step_async(self, action: OpenEnvAction, timeout_s: float | None = None, **others: Any) -> OpenEnvObservation:
        """Take one step; an episode that has not begun begins."""
        episode = await self.current_episode()
        ended_before = self._state.ended is not None
        if action.type == "list_tools":
            observation = OpenEnvObservation(tools=episode.tools, ended=self._state.ended)
        else:
            self._state.step_count += 1
            if action.type == "call_tool":
                observation = await episode.call(action.tool_name, action.arguments)
            else:
                observation = await (episode.say(action.text) if action.type == "say" else episode.finish())
            self._state.ended = observation.ended
        if observation.ended is None:
            return observation
        reward = None if ended_before else await episode.reward()
        return observation.model_copy(update={"done": True, "reward": reward})

    async def current_episode(self) -> HostedEpisode:
        """Return the episode, which begins now if none has."""
        if self._episode is None:
            await self.reset_async()
        assert self._episode is not None
        return self._episode

    def reset(self, seed: int | None = None, episode_id: str | None = None, **others: Any) -> OpenEnvObservation:
        """Raise TypeError: the package calls the asynchronous method if there is one."""
        raise TypeError("this environment is asynchronous: await reset_async")

    def step(self, action: OpenEnvAction, timeout_s: float | None = None, **others: Any) -> OpenEnvObservation:
        """Raise TypeError, as `reset`."""
        raise TypeError("this environment is asynchronous: await step_async")

    @property
    def state(self) -> OpenEnvState:
        """Return where the episode is."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """Return what this environment is."""
        host = self._host
        about = f"The service {host.name}, as its logs show it: {len(host.tasks)} tasks, digest {host.digest}."
        return EnvironmentMetadata(name=host.name, description=about, version="0.1.0", readme_content=host.readme)

    def list_splits(self) -> list[str]:
        """Return the splits."""
        return sorted({task["split"] for task in self._host.tasks})

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        """Return a split's tasks."""
        task_ids = [task["task_id"] for task in self._host.tasks if task["split"] == split]
        return [{"index": n, "task_id": task_id, "split": split} for n, task_id in enumerate(task_ids)]

    def num_tasks(self, split: str) -> int:
        """Return a split's number of tasks."""
        return len(self.list_tasks(split))

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        """Return one task; IndexError if there is none."""
        if index < 0:
            raise IndexError(index)
        return self.list_tasks(split)[index]

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[dict[str, Any]]:
        """Return a range of tasks."""
        return self.list_tasks(split)[start:stop]

    def close(self) -> None:
        """End the episode, from any thread."""
        episode, self._episode = self._episode, None
        if episode is not None:
            episode.close()


class SessionTools:
    """A session's tools as the package's MCP client."""

    def __init__(self, session: OpenEnvSession) -> None:
        self._session = session

    def is_connected(self) -> bool:
        """Return True: it is the session itself."""
        return True

    async def __aenter__(self) -> SessionTools:
        return self

    async def __aexit__(self, *error: object) -> None:
        """Do nothing: nothing was opened."""

    async def list_tools(self) -> list[dict[str, Any]]:
        """Return the descriptors."""
        return (await self._session.current_episode()).tools

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the answer as an MCP result."""
        observation = await self._session.step_async(OpenEnvAction(tool_name=name, arguments=arguments))
        return {"content": [{"type": "text", "text": observation.content}], "isError": observation.is_error,
                "_meta": {"traceroom/ended": observation.ended}}


_ESCAPES = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})(?:\\u([dD][c-fC-F][0-9a-fA-F]{2}))?|u([dD][c-fC-F][0-9a-fA-F]{2})|.)", re.DOTALL)
"""An escape in a JSON text: half a character with or without its other half, or any other."""


def well_formed_json(text: str) -> str:
    """Return a JSON text with U+FFFD in the place of each half of a character that stands alone: no answer could repeat it."""
    def whole(escape: re.Match[str]) -> str:
        first, second, alone = escape.groups()
        return r"\ufffd" if alone or (first and not second) else escape.group()

    return _ESCAPES.sub(whole, text) if "\\" in text else text


class WellFormedRequests:
    """ASGI middleware: the JSON that clients send holds whole characters alone."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass on what clients send."""
        async def whole() -> Any:
            event = await receive()
            if event["type"] == "websocket.receive" and event.get("text"):
                return {**event, "text": well_formed_json(event["text"])}
            if event["type"] == "http.request" and b"\\u" in event.get("body", b""):
                return {**event, "body": well_formed_json(event["body"].decode("utf-8", "replace")).encode()}
            return event

        await self._app(scope, whole if scope["type"] in ("http", "websocket") else receive, send)


def create_app(host: Host, limits: ConcurrencyConfig) -> Any:
    """Return the web application."""
    app = create_fastapi_app(  # of a partial the package sees the class, and that one thread is enough
        functools.partial(OpenEnvSession, host), OpenEnvAction, OpenEnvObservation, concurrency_config=limits,
        env_name=host.name, state_cls=OpenEnvState)
    app.add_middleware(WellFormedRequests)
    app.add_exception_handler(RequestValidationError, _invalid)
    for failure in (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
        app.add_exception_handler(failure, _refused)
    return app


async def _invalid(request: Any, error: Exception) -> JSONResponse:
    """Say what is wrong with a request, without repeating it: it may hold what no answer can."""
    errors = error.errors() if isinstance(error, RequestValidationError) else []
    return JSONResponse({"detail": [{"loc": [str(part) for part in each["loc"]], "msg": each["msg"], "type": each["type"]}
                                    for each in errors]}, 422)


async def _refused(request: Any, error: Exception) -> JSONResponse:
    """Say why a request cannot be carried out."""
    return JSONResponse({"detail": f"{type(error).__name__}: {error}".encode("utf-8", "replace").decode()}, 400)
