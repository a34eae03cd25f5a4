"""NeMo Gym's simple_agent plays every row against our resources server, over HTTP on loopback, with a scripted model."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

from telling import EXPORTS, WORK, episodes, tell

FOLDER = EXPORTS / "nemo_gym" / "resources_servers"
PACKAGE = next(FOLDER.glob("traceroom_*")).name
os.environ["NEMO_GYM_CONFIG_DICT"] = "{}"
os.chdir(WORK)
sys.argv = sys.argv[:1]
sys.path.insert(0, str(FOLDER))

import uvicorn  # noqa: E402
from fastapi import FastAPI  # noqa: E402
from nemo_gym import server_utils  # noqa: E402
from nemo_gym.base_resources_server import BaseResourcesServerConfig, BaseRunRequest  # noqa: E402
from nemo_gym.config_types import BaseServerConfig, DatasetConfig, ModelServerRef, ResourcesServerRef  # noqa: E402
from nemo_gym.openai_utils import NeMoGymResponse  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402
from responses_api_agents.simple_agent.app import SimpleAgent, SimpleAgentConfig  # noqa: E402

room = importlib.import_module(f"{PACKAGE}.nemo_gym_room")
wired = OmegaConf.to_container(OmegaConf.load(FOLDER / PACKAGE / "configs" / f"{PACKAGE}.yaml"))
OmegaConf.load(FOLDER / PACKAGE / "manifest.yaml")
RESOURCES, AGENT, MODEL = f"{PACKAGE}_resources_server", f"{PACKAGE}_simple_agent", "policy_model"
script: list[dict[str, Any]] = []
model = FastAPI()


@model.post("/v1/responses")
async def respond(body: dict[str, Any]) -> dict[str, Any]:
    """Return the next move of the script, as a model's response."""
    item = script.pop(0)
    return NeMoGymResponse.model_validate({
        "id": "r", "created_at": 0, "model": "script", "object": "response", "output": [item], "parallel_tool_calls": False,
        "tool_choice": "auto", "tools": []}).model_dump()


def scripted(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return steps as output items of responses: words before the last ones go through the tool that speaks."""
    words = steps[-1].get("say") if steps else None
    items = []
    for place, step in enumerate(steps[:-1] if words is not None else steps):
        name, arguments = (room.ROUTES.speak, {"text": step["say"]}) if "say" in step else (step["tool"], step["arguments"])
        items.append({"type": "function_call", "call_id": f"call_{place}", "name": name, "arguments": json.dumps(arguments)})
    said = {"type": "output_text", "text": words or "", "annotations": []}
    return [*items, {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [said]}]


def serve(app: FastAPI, listening: socket.socket) -> tuple[uvicorn.Server, asyncio.Task[None]]:
    """Return a server on a socket of its own."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    return server, asyncio.create_task(server.serve(sockets=[listening]))


async def main() -> None:
    """Start the three servers and run every row."""
    sockets = {name: socket.create_server(("127.0.0.1", 0)) for name in (RESOURCES, AGENT, MODEL)}
    places = {name: {"host": "127.0.0.1", "port": listening.getsockname()[1]} for name, listening in sockets.items()}
    client = server_utils.ServerClient(
        head_server_config=BaseServerConfig(host="127.0.0.1", port=1),
        global_config_dict=OmegaConf.create({name: {"kind": {"server": place}} for name, place in places.items()}))
    server_utils.set_global_aiohttp_client(server_utils.GlobalAIOHTTPAsyncClientConfig())
    ours = room.KitServer(server_client=client, config=BaseResourcesServerConfig(
        **places[RESOURCES], name=RESOURCES, entrypoint="app.py", domain="agent"))
    agent = SimpleAgent(server_client=client, config=SimpleAgentConfig(
        **places[AGENT], name=AGENT, entrypoint="app.py",
        resources_server=ResourcesServerRef.model_validate(wired[AGENT]["responses_api_agents"]["simple_agent"]["resources_server"]),
        model_server=ModelServerRef.model_validate(wired[AGENT]["responses_api_agents"]["simple_agent"]["model_server"])))
    apps = {RESOURCES: ours.setup_webserver(), AGENT: agent.setup_webserver(), MODEL: model}
    running = [serve(app, sockets[name]) for name, app in apps.items()]

    async def run(row: dict[str, Any], steps: list[dict[str, Any]]) -> dict[str, Any]:
        script[:] = scripted(steps)
        response = await client.post(server_name=AGENT, url_path="/run", json=row)
        told = await server_utils.get_response_json(response)
        assert response.status == 200 and not script, (told, script)
        return dict(told)

    rows = [json.loads(line) for path in sorted((FOLDER / PACKAGE / "data").glob("*.jsonl")) for line in path.open()]
    datasets = wired[AGENT]["responses_api_agents"]["simple_agent"]["datasets"]
    assert sum(len((FOLDER.parent / DatasetConfig.model_validate(each).jsonl_fpath).read_text().splitlines())
               for each in datasets) == len(rows)
    for row in rows:
        BaseRunRequest.model_validate(row)
        assert (await run(row, []))["reward"] == 0.0
        graded = await run(row, room.KIT.solution(row["verifier_metadata"]["task_id"]))
        assert graded["reward"] == 1.0 and graded["digest"] == room.KIT.digest == row["verifier_metadata"]["digest"], graded
    by_task = {row["verifier_metadata"]["task_id"]: row for row in rows}
    rewards = {each["name"]: (await run(by_task[each["task_id"]], each["steps"]))["reward"] for each in episodes()}
    for server, task in running:
        server.should_exit = True
        await task
    await server_utils.get_global_aiohttp_client().close()
    tell(f"{len(rows)} rows run by its simple_agent: saying nothing 0, known solutions 1", digest=room.KIT.digest,
         rewards=rewards, rows=len(rows))


assert Path(FOLDER / PACKAGE / "app.py").is_file()
asyncio.run(main())
