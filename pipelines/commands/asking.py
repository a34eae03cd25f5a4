"""The commands `shopping` and `ask-real`: what to ask the real tools, and asking them."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from pipelines.commands.options import Directory, Json, Rewards
from pipelines.screen import data, many, say, table
from warehouse.errors import InputError

if TYPE_CHECKING:
    from pipelines.rollouts.asking import RealTools

_LONGEST_CALL = 70
FIELDS = ("service", "session_id", "task_id", "starts_at", "tool_calls", "writes")
"""Of an item, what asking needs."""


def shopping(
    environment: Directory,
    rollouts: Annotated[list[Path] | None, typer.Option(
        help="Folder of rollouts. May be repeated. Default: OUT/rollouts/NAME.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(help="Number of items.", min=1)] = 20,
    export: Annotated[Path | None, typer.Option(
        "--export", help="Write the items to this file, for ask-real.", show_default=False)] = None,
    rewards: Rewards = None, json: Json = False,
) -> None:
    """List the calls that, made once at the real tools, let the grader decide most of the unscored episodes.

    An episode is unscored if an unknown answer could turn its reward. Write the list to a file, and ask: traceroom ask-real.
    """
    from pipelines import playing
    from pipelines.commands.rolling import rollouts_of
    from pipelines.rollouts.kept import trajectories
    from pipelines.rollouts.shopping import shopping_list

    folders = rollouts or [rollouts_of(environment)]
    episodes = (episode for folder in folders for episode in trajectories(folder))
    listed = shopping_list(playing.load(environment, rewards), episodes, limit)
    if not listed.n_episodes:
        raise InputError("there are no rollouts", ", ".join(map(str, folders)), "play some: traceroom rollout")
    items = [{**item._asdict(), "tool_calls": list(item.tool_calls)} for item in listed.items]
    if export is not None:
        export.parent.mkdir(parents=True, exist_ok=True)
        export.write_text(_lines(items), "utf-8")
    table("To ask", [{
        "call": _short(item["tool_calls"][-1]), "after": len(item["tool_calls"]) - 1,
        "writes": "yes" if item["writes"] else "no",
        "episodes": item["n_episodes"], "scoreable": item["n_scoreable"]} for item in items],
        right=("after", "episodes", "scoreable"))
    n_scoreable = items[-1]["n_scoreable"] if items else 0
    say(f"[bold]{n_scoreable}[/] of {many(listed.n_unscored, 'unscored episode')} can be scored with "
        f"{many(len(items), 'answer')}; {many(listed.n_episodes, 'episode')} in all")
    if export is not None:
        say(f"[bold]{escape(str(export))}[/]: ask with traceroom ask-real {escape(str(export))}")
    if json:
        data({**listed._asdict(), "items": items})


def ask_real(
    items: Annotated[Path, typer.Argument(help="File of `shopping --export`.")],
    to: Annotated[Path, typer.Option("--to", help="File of the answers, for a person to accept.")],
    bind: Annotated[list[str] | None, typer.Option(
        "--bind", help="SOURCE of all tools, or TOOL=SOURCE of one (docs/environment.md). May be repeated.",
        show_default=False)] = None,
    reset: Annotated[str | None, typer.Option(
        help="Source that brings the service to the state in which a session began; asked before each item, as by transfer.",
        show_default=False)] = None,
    allow_writes: Annotated[bool, typer.Option(
        "--allow-writes", help="Make calls of tools that may write, too: on a copy of the service only.")] = False,
    per_second: Annotated[float, typer.Option(help="Maximum calls per second.", min=0.001)] = 1.0,
    json: Json = False,
) -> None:
    """Make the calls of a shopping list at the real tools, one after the other; write the answers for a person to accept.

    Calls of tools that may write are left out unless --allow-writes is given. Accept the answers: traceroom review OUT
    --answers FILE; the next run takes them. """
    from pipelines.rollouts.asking import answers_of

    wanted = list(_items(items))
    answers = list(answers_of(wanted, _tools(wanted, bind or [], reset, allow_writes, per_second)))
    made = [row for row in answers if "problem" not in row]
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(_lines(made), "utf-8")
    table("Not asked", [{"call": _short(row["tool_calls"][-1]), "why": row["problem"]} for row in answers if "problem" in row])
    n_differ = sum(row["differs"] is not None for row in made)
    say(f"[bold]{many(len(made), 'answer')}[/] in {escape(str(to))}; {n_differ} after a call that the real tool answers "
        "otherwise than the environment")
    say(f"Accept them: traceroom review OUT --answers {escape(str(to))}")
    if json:
        data(answers)


def _lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json_module.dumps(row, ensure_ascii=False, sort_keys=True) + "\n" for row in rows)


def _items(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        raise InputError("there is no such file", str(path), "write one with: traceroom shopping ENVIRONMENT --export FILE")
    rows = []
    for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
        if line.strip():
            try:
                row = json_module.loads(line)
                rows.append({name: row[name] for name in FIELDS})
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"this is no item ({error!r})", f"{path}, line {number}",
                                 "write the file with: traceroom shopping ENVIRONMENT --export FILE") from error
    return rows


def _tools(
    items: list[dict[str, Any]], options: list[str], reset: str | None, may_write: bool, per_second: float
) -> RealTools:
    """Bind what the options name. Raises InputError."""
    from env_builder.runtime.bindings import binding
    from pipelines.playing import bindings_of_all, check_source
    from pipelines.rollouts.asking import RealTools

    sources = bindings_of_all({call["tool"] for item in items for call in item["tool_calls"]}, options)
    if reset is not None:
        check_source(reset, f"--reset {reset}")
    try:
        bound = {tool: binding(source) for tool, source in sources.items()}
        return RealTools(bound, binding(reset) if reset else None, may_write, per_second)
    except (ValueError, ImportError, AttributeError, OSError) as error:
        raise InputError(f"cannot bind: {error}", "--bind", "see docs/howto/asking.md") from error


def _short(call: dict[str, Any]) -> str:
    text = f"{call['tool']} {json_module.dumps(call['arguments'], ensure_ascii=False)}"
    return text if len(text) <= _LONGEST_CALL else f"{text[:_LONGEST_CALL - 1]}…"
