"""Commands that play in an environment or grade episodes of it: `play`, `grade`, `verify`, `attack`, `serve`."""

from __future__ import annotations

import os
import secrets
import shlex
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape

from pipelines.commands.completing import complete_task
from pipelines.commands.options import AskModel, Bind, BindingsConfig, Directory, Json, Mode, Perturbations, Rewards, Seed
from pipelines.inspection.tasks import task_rows
from pipelines.screen import data, say, table
from warehouse.errors import GateFailed, InputError, Missing


def play(
    environment: Directory,
    task: Annotated[str, typer.Argument(
        help="Task id, or the beginning of it if no other task begins so.", autocompletion=complete_task)],
    script: Annotated[Path | None, typer.Option(
        help='File of JSON lines {"tool", "arguments"} or {"say"}, instead of typing.', show_default=False)] = None,
    seed: Seed = 0, perturbation: Perturbations = None, bind: Bind = None, config: BindingsConfig = None, ask: AskModel = False,
    mode: Mode = "eval", rewards: Rewards = None, json: Json = False,
) -> None:
    """Play a task yourself, and see the grade at the end.

    Type `TOOL {"argument": 1}` to call a tool, and any other text to speak to the user; `/tools` lists the tools,
    `/finish` ends the episode. Environment and grader run in this process: for people and trusted scripts.
    """
    from pipelines import playing

    task_id = _find_task(environment, task)
    bound = playing.bindings(environment, bind or (), config)
    model = playing.live(ask)
    room = playing.begin(environment, rewards, task_id, seed, perturbation or (), bound, model)
    for message in room.observation.messages:
        if message["role"] not in ("system", "developer"):
            say(f"[bold cyan]{escape(message['role'])}[/] {escape(message['content'])}")
    limits = room.observation.limits
    say(f"[dim]{len(room.observation.tools)} tools" + (f", {limits.steps} steps at most" if limits else "") + "[/]\n")
    steps = []
    for step in playing.played(room, playing.scripted(script) if script else _type_moves(room)):
        steps.append(step)
        _show_step(step)
    grade = playing.graded(room, mode, model)
    _show_grade(grade)
    if json:
        ended = room.environment.ended
        data({"environment": str(environment), "task_id": task_id, "steps": steps, "ended": ended, "grade": grade})


def _find_task(environment: Path, beginning: str) -> str:
    ids = [str(row["task_id"]) for row in task_rows(environment)]
    matches = [beginning] if beginning in ids else [task_id for task_id in ids if task_id.startswith(beginning)]
    if len(matches) > 1:
        raise InputError(f"{len(matches)} tasks begin so", beginning, f"give more of it: {', '.join(matches[:3])}")
    if not matches:
        raise Missing.named("task", beginning, ids, f"list them with: traceroom tasks {shlex.quote(str(environment))}")
    return matches[0]


def _type_moves(room: Any) -> Iterator[dict[str, Any]]:
    from pipelines import playing

    say('[dim]TOOL {"argument": …} calls a tool · any other text goes to the user · /tools · /finish[/]')
    tools = room.observation.tools
    names = {tool["name"] for tool in tools}
    while True:
        try:
            line = typer.prompt("", prompt_suffix="> ", err=True).strip()
        except (EOFError, typer.Abort):
            return
        if line == "/finish":
            return
        if line == "/tools":
            table("Tools", [
                {"tool": tool["name"], "does": (tool.get("description") or "").split("\n")[0]} for tool in tools])
            continue
        try:
            yield playing.typed(line, names)
        except (InputError, Missing) as error:
            say(f"[yellow]{escape(str(error))}[/]")


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
        say("\n[yellow]No grade: this task is unverified, or its rewards are elsewhere (--rewards).[/]")
        return
    reward = "none[/]: the episode depends on unknown answers" if grade["reward"] is None else f"{grade['reward']:g}[/]"
    say(f"\n[bold]reward {reward}, {grade['tally']}")
    for check in grade["checks"]:
        mark = {True: "[green]✓[/]", False: "[red]✗[/]", None: "[yellow]?[/]"}[check["passed"]]
        say(f"  {mark} {escape(check['description'])} [dim]{check['role']}[/]")


def grade(
    environment: Directory,
    journals: Annotated[Path, typer.Argument(help="File of `serve --journals` or of `rollout`: JSON lines, one per episode.")],
    mode: Mode = "eval",
    steps: Annotated[bool, typer.Option("--steps", help="Add potential-based rewards of each step to --json.")] = False,
    discount: Annotated[float, typer.Option(help="Discount of later rewards, for --steps.")] = 1.0,
    bind: Bind = None,
    ask: Annotated[bool, typer.Option(
        "--ask", help="Let the model of TRACEROOM_MODEL judge; without it, judged checks are not scored.")] = False,
    rewards: Rewards = None, json: Json = False,
) -> None:
    """Grade episodes by their journals: each is replayed on the grader's own copy of the environment."""
    task_rows(environment)
    from pipelines import playing

    bound = playing.bindings(environment, bind or (), None)
    grades = list(playing.graded_journals(
        environment, rewards, journals, bound, mode, playing.live(ask), discount if steps else None))
    if json:
        data(grades)
    table("Grades", [{"task": row["task_id"][:12], "reward": "none" if row["reward"] is None else f"{row['reward']:g}",
                      "checks": row["tally"]} for row in grades])
    scored = [row["reward"] for row in grades if row["reward"] is not None]
    mean = f", on average [bold]{sum(scored) / len(scored):.3f}[/]" if scored else ""
    say(f"[bold]{len(scored)}[/] of {len(grades)} episodes scored{mean}")


def verify(
    environment: Directory, rewards: Rewards = None,
    deep: Annotated[bool, typer.Option("--deep", help="Try every attacker, and more variations of each write call.")] = False,
    json: Json = False,
) -> None:
    """Verify an environment again: its known solutions earn 1, replays are identical, and no attacker succeeds.

    Each task is played by its recorded sessions, by attackers, and by its solution with a write call removed, repeated, added,
    applied to another record, or given another value.
    """
    from pipelines.playing import verified

    task_rows(environment)
    verification = verified(environment, rewards, deep)
    if json:
        data(verification)
    table("Players", [
        {"player": name, **counts} for name, counts in verification["audit"]["tried"]["players"].items() if counts["n"]])
    table("Rejected", [row for row in verification["decisions"] if not row["kept"]])
    n_hold, n_tasks = len(verification["tasks"]), verification["n_tasks"]
    say(f"[bold]{n_hold}[/] of {n_tasks} tasks hold")
    if n_hold < n_tasks:
        raise GateFailed(f"{n_tasks - n_hold} of {n_tasks} tasks do not hold", str(environment), "build it again with: "
                         "traceroom run")


def attack(
    environment: Directory,
    task: Annotated[str | None, typer.Argument(
        help="Task id, or the beginning of it if no other task begins so. Default: all tasks.", show_default=False,
        autocompletion=complete_task)] = None,
    rewards: Rewards = None, json: Json = False,
) -> None:
    """Attack the rewards of published tasks with parts of their known solutions; show which attacks earn the reward.

    The battery needs no model of the world: it plays the solution without its write calls, with other words and texts, and
    conduct that does nothing. With TASK, each attack is shown with the checks that stop it.
    """
    task_id = _find_task(environment, task) if task else None
    task_rows(environment)
    from pipelines.playing import attacked

    rows = attacked(environment, rewards, task_id)
    if json:
        data(rows)
    attacks = [{"task": row["task_id"][:12], **each} for row in rows for each in row["attacks"]]
    if task_id:
        table("Attacks", [_attack_row(each) for each in attacks])
    else:
        table("Attacks", _attack_totals(attacks))
        table("Passing", [
            {name: each[name] for name in ("task", "attack", "description")} for each in attacks if each["passes"]])
    reasons = Counter(row["reason"] for row in rows if row["reason"])
    table("Not attacked", [{"tasks": n, "why": reason} for reason, n in reasons.most_common()], right=("tasks",))
    if reasons.total() == len(rows):
        raise InputError("no task here could be attacked", str(environment),
                         "name an environment of published tasks: OUT/environments/NAME")
    n_open = sum(bool(row["reason"]) or any(each["passes"] for each in row["attacks"]) for row in rows)
    say(f"[bold]{len(rows) - n_open}[/] of {len(rows)} tasks stop every attack")
    if n_open:
        raise GateFailed(f"{n_open} of {len(rows)} tasks do not stop every attack", str(environment),
                         "correct their rewards (docs/rewards.md), or build them again with: traceroom run")


def _attack_row(each: dict[str, Any]) -> dict[str, Any]:
    is_scored = each["reward"] is not None
    reward = f"{each['reward']:g}" if is_scored else "none"
    stopped = f"stopped by {', '.join(each['stopped_by'])}" if is_scored else "not scored: the environment cannot tell"
    outcome = stopped if each["stopped_by"] else "PASSES" if each["passes"] else f"passes, may be right: {each['excuse']}"
    return {"attack": each["attack"], "reward": reward, "outcome": outcome, "description": each["description"]}


def _attack_totals(attacks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row an attack: how often it was played, passed, may be right, and which checks stopped it how often."""
    totals = []
    for name in dict.fromkeys(each["attack"] for each in attacks):
        own = [each for each in attacks if each["attack"] == name]
        stops = Counter(kind for each in own if each["reward"] is not None for kind in each["stopped_by"])
        totals.append({
            "attack": name, "played": len(own), "pass": sum(each["passes"] for each in own),
            "may be right": sum(not each["passes"] and not each["stopped_by"] for each in own),
            "not scored": sum(each["reward"] is None for each in own),
            "stopped by": ", ".join(f"{kind} {n:,}" for kind, n in stops.most_common())})
    return totals


def serve(
    environment: Directory,
    task: Annotated[str | None, typer.Option(
        help="Task to play; without it, sessions choose, or play no task.", autocompletion=complete_task)] = None,
    host: Annotated[str, typer.Option(help=(
        "Address to listen on; if it is not this machine's own, clients need a token, and --allow-host names the server."))]
    = "127.0.0.1",
    allow_host: Annotated[list[str] | None, typer.Option(
        "--allow-host", help="Name or address that clients use for this server. May be repeated.", show_default=False)] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = 8765,
    seed: Seed = 0, perturbation: Perturbations = None, bind: Bind = None, config: BindingsConfig = None, ask: AskModel = False,
    talk: Annotated[Literal["auto", "on", "off"], typer.Option(
        help="Tools `say` and `finish` over MCP; auto: where a task has a user.")] = "auto",
    grade: Annotated[bool, typer.Option("--grade", help=(
        "Let a second MCP client grade, at /grade; it needs the token that is printed, or TRACEROOM_GRADE_TOKEN."))] = False,
    openenv: Annotated[bool, typer.Option("--openenv", help="Run an OpenEnv server instead: HTTP and WebSocket.")] = False,
    container: Annotated[bool, typer.Option("--container", help="Run the environment in a container.")] = False,
    journals: Annotated[Path | None, typer.Option(
        help="File to append the episodes' journals to, for `grade`.", show_default=False)] = None,
    episodes: Annotated[int, typer.Option(
        help="Maximum concurrent episodes; extra clients get HTTP 503 with Retry-After.", min=1)] = 2048,
    per_client: Annotated[int | None, typer.Option(
        "--per-client", min=1, help="Maximum concurrent episodes of one client: of a token, else of an address.",
        show_default="all; with several tokens half of them")] = None,
    idle: Annotated[float, typer.Option(help="Seconds without a request after which an episode ends.", min=0.1)] = 1800.0,
) -> None:
    """Serve an environment to agents, one episode per session: over MCP (streamable HTTP), or to OpenEnv clients."""
    task_id = _find_task(environment, task) if task else None
    task_rows(environment)
    from pipelines import playing
    from pipelines.serving.access import ServerAccess
    from pipelines.serving.sessions import TALK, Rollout, SessionLimits

    access = ServerAccess.of(host, allow_host or ())
    bound = playing.bindings(environment, bind or (), config)
    rollout = Rollout(task_id, seed, tuple(perturbation or ()), bound, playing.live(ask), TALK[talk])
    token = os.environ.get("TRACEROOM_GRADE_TOKEN") or secrets.token_urlsafe() if grade else None
    if openenv:
        if grade:
            raise InputError("an OpenEnv server grades by itself", "--grade", "leave it out")
        from pipelines.serving import openenv_server
        start = partial(openenv_server.serve, say=lambda text: say(escape(text)))
    else:
        from pipelines.serving import mcp_server
        start = partial(mcp_server.serve, grader_token=token)

    def ready(url: str) -> None:
        say(f"[bold]{escape(url)}[/] answers; stop it with Ctrl-C")
        if access.exposed:
            say(f"it answers to {escape(', '.join(access.hosts))}; clients send the header Authorization: Bearer "
                f"{escape(access.tokens.for_clients())}; put TLS before it")
        if token:
            say(f"graders: {escape(url.removesuffix('mcp'))}grade, with the header Authorization: Bearer {escape(token)}")

    has_several = len(access.tokens) > 1 or access.tokens.file is not None
    limits = SessionLimits(episodes, idle, per_client or (max(1, episodes // 2) if has_several else None))
    start(environment, rollout, (host, port), access, container=container, journals=journals, limits=limits, ready=ready)
