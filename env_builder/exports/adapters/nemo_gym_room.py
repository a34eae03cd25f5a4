"""The environment as a resources server of NeMo Gym: a route a tool, a session an episode, and the grader behind `/verify`.

`/seed_session` begins the task that a row names (`verifier_metadata.task_id`); an agent such as `simple_agent` posts the
arguments of a call to the tool's route and gets the answer as text. It stops at words without a call: `/verify` says these last
words to the user and grades. To be answered by the user before that, the model calls the tool that speaks. Without a session
the calls in the response are made again. The reward is 0 if it is unknown (`scored`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse
from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig,
    BaseSeedSessionRequest,
    BaseSeedSessionResponse,
    BaseVerifyRequest,
    BaseVerifyResponse,
    SimpleResourcesServer,
)
from nemo_gym.server_utils import SESSION_ID_KEY
from pydantic import Field

from . import play

KIT = play.open(Path(__file__).parent)
ROUTES = play.routes_of(KIT.tools, KIT.tasks)


class SeedRequest(BaseSeedSessionRequest):
    """What of a row says how to begin."""
    verifier_metadata: dict[str, Any]


class VerifyRequest(BaseVerifyRequest):
    """The row beside the response."""
    verifier_metadata: dict[str, Any]


class VerifyResponse(BaseVerifyResponse):
    """The reward, and what is behind it."""

    verifier_metadata: dict[str, Any]
    scored: bool
    digest: str
    checks: dict[str, bool | None]


class KitServer(SimpleResourcesServer):
    """Any number of sessions, an episode each."""

    config: BaseResourcesServerConfig
    episodes: dict[str, Any] = Field(default_factory=dict, exclude=True)

    def setup_webserver(self) -> FastAPI:
        app = super().setup_webserver()
        app.post("/{route}")(self.call)
        return app

    async def seed_session(self, request: Request, body: SeedRequest) -> BaseSeedSessionResponse:
        accepted = body.verifier_metadata
        self.episodes[request.session[SESSION_ID_KEY]] = KIT.begin(accepted["task_id"], int(accepted.get("seed") or 0))
        return BaseSeedSessionResponse()

    async def call(self, route: str, request: Request) -> PlainTextResponse:
        """Return a tool's answer, byte for byte."""
        episode = self.episodes.get(request.session[SESSION_ID_KEY])
        if episode is None:
            return PlainTextResponse("no episode has begun: post to /seed_session first", status_code=400)
        try:
            arguments = await request.json()
        except ValueError:
            arguments = None
        return PlainTextResponse(ROUTES.call(episode, route, arguments))

    async def verify(self, request: Request, body: VerifyRequest) -> VerifyResponse:
        """End the episode and grade it."""
        accepted, output = body.verifier_metadata, body.response.output
        episode = self.episodes.pop(request.session[SESSION_ID_KEY], None)
        if episode is None:
            episode = KIT.begin(accepted["task_id"], int(accepted.get("seed") or 0))
            for item in output:
                if item.type == "function_call":
                    ROUTES.call(episode, item.name, item.arguments)
        last = output[-1] if output else None
        if last is not None and last.type == "message":
            words = " ".join(part.text for part in last.content if part.type == "output_text")
            if words.strip():
                episode.say(words)
        episode.finish()
        reward = episode.reward()
        return VerifyResponse(
            **body.model_dump(), reward=reward or 0.0, scored=reward is not None, digest=KIT.digest,
            checks={check["check_id"]: check["passed"] for check in episode.findings()})
