"""The command `review`: the queue of sessions to review, a random sample, and their files."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape

from env_builder.runtime.canonical import canonical
from pipelines.commands.options import Json
from pipelines.screen import data, many, say, table
from pipelines.settings import Settings, account_name

_LONGEST_GOAL, _LONGEST_SENTENCE = 60, 200
MOST_CONDITIONS = 5
"""Conditions that the command prints."""


def review(
    out: Annotated[str, typer.Argument(help="Output folder of the run.")] = "out",
    limit: Annotated[int, typer.Option(help="Number of sessions in the queue.", min=1)] = 30,
    sample: Annotated[int | None, typer.Option(
        help="Draw this many published tasks at random instead: their reviews measure the precision of the release.",
        show_default=False, min=1)] = None,
    seed: Annotated[int, typer.Option(help="Random seed of --sample.")] = 0,
    service: Annotated[str | None, typer.Option(help="Review only this service.", show_default=False)] = None,
    export: Annotated[Path | None, typer.Option(
        "--export", help="Write the cases to this file, to be answered elsewhere.", show_default=False)] = None,
    imported: Annotated[Path | None, typer.Option(
        "--import", help="Read answers from this file into OUT/reviews.jsonl; the next run uses them.",
        show_default=False)] = None,
    answers: Annotated[Path | None, typer.Option(
        "--answers", help="Read answers of real tools from this file of ask-real: those with accepted true or false come into "
                          "OUT/answers.jsonl; the next run takes the accepted ones.", show_default=False)] = None,
    accept_all: Annotated[bool, typer.Option(
        "--accept-all", help="With --answers: accept each that is undecided, unless the real tool answered an earlier call "
                             "otherwise than the environment.")] = False,
    form: Annotated[Literal["jsonl", "label-studio"], typer.Option("--format", help="Format of --export.")] = "jsonl",
    reviewer: Annotated[str | None, typer.Option(
        help="Reviewer of answers that name none. Default: this machine's user.", show_default=False)] = None,
    json: Json = False,
) -> None:
    """Show which sessions to review: those whose answer makes most tasks publishable come first.

    The next run reads the reviews in OUT/reviews.jsonl. Answer in the browser (traceroom ui), or in a file.
    """
    from pipelines.inspection.summary import out_of

    settings = out_of(out)
    if imported is not None:
        _import(settings, imported, reviewer or account_name("reviewer"), json)
        return
    if answers is not None:
        _accept(settings, answers, reviewer or account_name("reviewer"), accept_all, json)
        return
    _show(settings, limit, sample, seed, service, export, form, reviewer or "", json)


def _import(settings: Settings, path: Path, reviewer: str, json: bool) -> None:
    from pipelines.reviewing.files import import_reviews

    result = import_reviews(path, settings.reviews, reviewer, datetime.now(UTC))
    say(f"[bold]{many(result.n_new, 'review')}[/] added to {escape(str(settings.reviews))}; {result.n_known:,} were there, "
        f"{many(result.n_unanswered, 'case')} without an answer")
    table("Rejected", result.rejected, right=("line",))
    say("The next run uses them: traceroom run LOGS --out " + escape(settings.out))
    if json:
        data(result._asdict())


def _accept(settings: Settings, path: Path, reviewer: str, accept_all: bool, json: bool) -> None:
    from pipelines.reviewing.answers import accept_answers

    result = accept_answers(path, settings.answers, reviewer, datetime.now(UTC), accept_all)
    table("To decide (set accepted to true or false)", [_answer_row(row) for row in result.undecided])
    table("Rejected", result.rejected, right=("line",))
    say(f"[bold]{many(result.n_new, 'answer')}[/] added to {escape(str(settings.answers))}; {result.n_known:,} were there, "
        f"{many(len(result.undecided), 'answer')} undecided")
    if result.n_new:
        say("The next run takes them: traceroom run LOGS --out " + escape(settings.out))
    if json:
        data(result._asdict())


def _answer_row(row: dict[str, Any]) -> dict[str, Any]:
    call = row["tool_calls"][-1]
    return {"session": row["session_id"], "call": _short(f"{call['tool']} {canonical(call['arguments'])}", _LONGEST_GOAL),
            "answer": _short(call["content"], _LONGEST_GOAL), "as of": row.get("as_of") or "start",
            "differs before": row.get("differs") or "–"}


def _show(settings: Settings, limit: int, n_sampled: int | None, seed: int, service: str | None, export: Path | None,
          form: Literal["jsonl", "label-studio"], reviewer: str, json: bool) -> None:
    from extractors.reviews import agreement_of
    from pipelines.inspection.views import StoreSource
    from pipelines.quality.precision import published_precision, sentence_on
    from pipelines.reviewing.cases import case_of
    from pipelines.reviewing.files import export_queue
    from pipelines.reviewing.queue import conditions_to_settle, queue, sample
    from pipelines.rollouts.standings import unsolved_of
    from warehouse.store import Store

    with Store.published(settings.warehouse) as store:
        items = sample(store, n_sampled, seed, service) if n_sampled is not None else queue(
            store, limit, service, unsolved_of(Path(settings.out)))
        conditions = [each._asdict() for each in conditions_to_settle(store, service)] if n_sampled is None else []
        paths = export_queue(
            export, form, ((item, case_of(StoreSource(store), item.session_id)) for item in items), reviewer) if export else []
        reviews = store.table("core.reviews")
        agreement, statement = agreement_of(reviews), sentence_on(*published_precision(store))
    title = "Queue" if n_sampled is None else f"Random sample, seed {seed}"
    table(f"{title}: {many(len(items), 'session')} to review", [_row(item._asdict()) for item in items],
          right=("probability", "tasks"))
    _show_conditions(conditions)
    for path in paths:
        say(f"[bold]{escape(str(path))}[/]")
    if items and not paths:
        say(f"Answer in the browser (traceroom ui --out {escape(settings.out)}, page Reviews), or in a file (--export FILE)")
    say(f"{many(reviews.height, 'review')} so far" + (
        f"; reviewers agree on {agreement.share:.0%} of {many(agreement.n_pairs, 'pair')}"
        + (f" (kappa {agreement.kappa:.2f})" if agreement.kappa is not None else "") if agreement.share is not None else ""))
    say(escape(statement))
    if json:
        data({"queue": [item._asdict() for item in items], "conditions": conditions,
              "n_reviews": reviews.height, "agreement": agreement._asdict(),
              "statement": statement, "paths": [str(path) for path in paths]})


def _show_conditions(conditions: list[dict[str, Any]]) -> None:
    """Print each open condition with the sentence of the policy, and the sessions that would settle it."""
    if not conditions:
        return
    say(f"{many(len(conditions), 'condition')} to settle:")
    for row in conditions[:MOST_CONDITIONS]:
        say(f"  [bold]{escape(_short(row['sentence'], _LONGEST_SENTENCE))}[/]")
        say(f"    {row['why']}: {escape(row['tool'])} where {escape(row['condition'])} "
            f"({row['n_declined']:,} declined, {row['n_acted']:,} acted); {many(row['n_tasks'], 'task')} waiting")
        say(f"    review {escape(', '.join(row['session_ids']))}")
    if len(conditions) > MOST_CONDITIONS:
        say(f"  and {len(conditions) - MOST_CONDITIONS} more (--json)")


def _short(text: str, longest: int) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= longest else f"{one_line[:longest - 1]}…"


def _row(item: dict[str, Any]) -> dict[str, Any]:
    chance = item["probability"]
    return {"session": item["session_id"], "service": item["service"],
            "goal": _short(item["goal"], _LONGEST_GOAL),
            "probability": "–" if chance is None else f"{chance:.2f}", "tasks": f"{item['n_tasks']:.1f}",
            "why": item["why"] + (" (sampled)" if item["is_sampled"] else "")}
