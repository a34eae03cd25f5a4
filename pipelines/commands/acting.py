"""Commands that act in an environment: `play`, `verify`, `serve`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from env_builder.runtime.conditions import SWITCHES
from pipelines.commands.building import Json
from pipelines.commands.grading import Mode
from pipelines.reading import task_rows
from pipelines.screen import data, say, table
from warehouse.errors import GateFailed, InputError, Missing

Directory = Annotated[Path, typer.Argument(help="OUT/environments/NAME.")]
Rewards = Annotated[
    Path | None, typer.Option(help="The grader's side; OUT/rewards/NAME where not given.", show_default=False)]
Conditions = Annotated[list[str] | None, typer.Option(
    "--condition", help=f"What tools do in production beside answering: {', '.join(SWITCHES)}; may be repeated.",
    show_default=False)]
Bind = Annotated[list[str] | None, typer.Option(
    "--bind", help="TOOL=SOURCE: the real thing that answers what is not on record; may be repeated.", show_default=False)]
Config = Annotated[str | None, typer.Option(
    "--config", help="TOML file whose table `bindings` holds too; --bind wins.", show_default=False)]
Asked = Annotated[bool, typer.Option(
    "--ask", help="Let the model of TRACEROOM_MODEL answer what would be unknown; marked, and not scored.")]


def play(
    environment: Directory,
    task: Annotated[str, typer.Argument(help="Id of the task; a beginning that is its alone is enough.")],
    script: Annotated[Path | None, typer.Option(
        help='JSON lines {"tool", "arguments"} or {"say"}, instead of typing.', show_default=False)] = None,
    seed: Annotated[int, typer.Option(help="0: as recorded.")] = 0,
    condition: Conditions = None,
    bind: Bind = None,
    config: Config = None,
    ask: Asked = False,
    mode: Mode = "eval",
    rewards: Rewards = None,
    json: Json = False,
) -> None:
    """Act in an environment, and see the grade at the end.

    Type `TOOL {"argument": 1}` to call a tool, anything else to speak to the user; `/tools` lists the tools,
    `/finish` ends. Room and grader run in this process: for people and trusted scripts.
    """
    from pipelines import outside, playing

    task_id = _task(environment, task)
    bound = outside.bindings(environment, bind or (), config)
    room = playing.begin(environment, rewards, task_id, seed, condition or (), bound, outside.live(ask))
    _show_start(room)
    moves = playing.scripted(script) if script else _typed(room)
    steps = []
    for step in playing.played(room, moves):
        steps.append(step)
        _show_step(step)
    grade = playing.graded(room, mode, outside.live(ask))
    _show_grade(grade)
    if json:
        data({"environment": str(environment), "task_id": task_id, "steps": steps, "ended": room.ended, "grade": grade})


def _task(environment: Path, beginning: str) -> str:
    ids = [row["task_id"] for row in task_rows(environment)]
    found = [task_id for task_id in ids if task_id.startswith(beginning)]
    if beginning in ids:
        return beginning
    if len(found) > 1:
        raise InputError(f"{len(found)} tasks begin so", beginning, f"give more of it: {', '.join(found[:3])}")
    if not found:
        raise Missing.named("task", beginning, ids, f"list them with: traceroom tasks {environment}")
    return str(found[0])


def _typed(room: Any) -> Iterator[dict[str, Any]]:
    from pipelines import playing

    say('[dim]TOOL {"argument": …} calls · anything else is said to the user · /tools · /finish[/]')
    names = {tool["name"] for tool in room.tools}
    while True:
        try:
            line = typer.prompt("", prompt_suffix="> ", err=True).strip()
        except (EOFError, typer.Abort):
            return
        if line == "/finish":
            return
        if line == "/tools":
            table("Tools", [
                {"tool": tool["name"], "does": (tool.get("description") or "").split("\n")[0]} for tool in room.tools])
            continue
        try:
            yield playing.typed(line, names)
        except (InputError, Missing) as error:
            say(f"[yellow]{escape(str(error))}[/]")


def _show_start(room: Any) -> None:
    for message in room.observation.messages:
        if message["role"] not in ("system", "developer"):
            say(f"[bold cyan]{escape(message['role'])}[/] {escape(message['content'])}")
    limits = room.observation.limits
    say(f"[dim]{len(room.tools)} tools" + (f", {limits.steps} steps at most" if limits else "") + "[/]\n")


def _show_step(step: dict[str, Any]) -> None:
    if step["kind"] == "say":
        reply = step["reply"]
        say("[dim]the user has nothing more to say[/]" if reply is None else f"[bold cyan]user[/] {escape(reply)}")
        return
    colour = {"recorded": "green", "unknown": "red"}.get(step["tier"], "blue")
    error = " [red]error[/]" if step["is_error"] else ""
    say(f"[{colour}]{step['tier']}[/]{error} [bold]{escape(step['tool'])}[/] {escape(step['content'])}")


def _show_grade(grade: dict[str, Any] | None) -> None:
    if grade is None:
        say("\n[yellow]No grade: this task has no verified reward, or its rewards are elsewhere (--rewards).[/]")
        return
    reward = grade["reward"]
    unscored = "none[/]: the episode leaned on answers that nobody knows"
    say("\n[bold]reward " + (unscored if reward is None else f"{reward:g}[/]") + f", {grade['tally']}")
    for check in grade["checks"]:
        mark = {True: "[green]✓[/]", False: "[red]✗[/]", None: "[yellow]?[/]"}[check["passed"]]
        say(f"  {mark} {escape(check['says'])} [dim]{check['role']}[/]")


def verify(
    environment: Directory,
    rewards: Rewards = None,
    deep: Annotated[bool, typer.Option("--deep", help="Try everything: more changes of each act, every attacker.")] = False,
    json: Json = False,
) -> None:
    """Prove an environment again: the known solution earns 1, twice the same is the same, and nobody else gets through.

    Played against each task: its recorded sessions, attackers, and the solution with an act left out, done twice, added,
    done to another thing, or with another value.
    """
    from pipelines.playing import verified

    task_rows(environment)
    found = verified(environment, rewards, deep)
    if json:
        data(found)
    table("Players", [
        {"player": name, **counts} for name, counts in found["audit"]["tried"]["players"].items() if counts["n"]])
    table("Left", [row for row in found["verdicts"] if not row["kept"]])
    n_hold, n_tasks = len(found["tasks"]), found["n_tasks"]
    say(f"[bold]{n_hold}[/] of {n_tasks} tasks hold")
    if n_hold < n_tasks:
        raise GateFailed(f"{n_tasks - n_hold} of {n_tasks} tasks do not hold", str(environment), "build it again with: "
                         "traceroom run")


def serve(
    environment: Directory,
    task: Annotated[str | None, typer.Option(help="Task to begin; without it, the room without a task.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0: any free one.")] = 8765,
    seed: Annotated[int, typer.Option(help="0: as recorded.")] = 0,
    condition: Conditions = None,
    bind: Bind = None,
    config: Config = None,
    ask: Asked = False,
    openenv: Annotated[bool, typer.Option("--openenv", help="As an OpenEnv server instead: HTTP and WebSocket.")] = False,
    container: Annotated[bool, typer.Option("--container", help="The room in a container.")] = False,
    journals: Annotated[Path | None, typer.Option(
        help="File that the episodes' journals are added to, for the grader.", show_default=False)] = None,
    episodes: Annotated[int, typer.Option(help="Episodes at once; whoever comes beyond is told to come again.", min=1)] = 2048,
    idle: Annotated[float, typer.Option(help="Seconds after which an episode that nobody touches ends.", min=0.1)] = 1800.0,
) -> None:
    """Serve an environment to agents, one episode a session: over MCP (streamable HTTP), or to OpenEnv's clients."""
    task_id = _task(environment, task) if task else None
    task_rows(environment)
    from pipelines import outside
    from pipelines.serving.rollouts import Rollout

    bound = outside.bindings(environment, bind or (), config)
    rollout = Rollout(task_id, seed, tuple(condition or ()), bound, outside.live(ask))
    def ready(url: str) -> None:
        say(f"[bold]{escape(url)}[/] answers; stop it with Ctrl-C")

    if openenv:
        from pipelines.serving import openenv_server
        openenv_server.serve(
            environment, rollout, host, port, container=container, journals=journals, limit=episodes, idle_s=idle,
            ready=ready, say=lambda text: say(escape(text)))
    else:
        from pipelines.serving import mcp_app
        mcp_app.serve(
            environment, rollout, host, port, container=container, journals=journals, limit=episodes, idle_s=idle,
            ready=ready)
