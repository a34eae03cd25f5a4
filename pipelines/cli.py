"""The command line: `traceroom`. Talk on stderr, data on stdout.

Exit codes: 0 done; 1 it ran and a gate failed; 2 it could not run. Each command lives in `pipelines/commands`, and loads
what it needs when it is called, so that `--help` answers at once.
"""

from __future__ import annotations

import os
import sys
import traceback

import typer

from pipelines.commands import (
    acting,
    browsing,
    building,
    evaluating,
    exporting,
    forgetting,
    grading,
    looking,
    naming,
    releasing,
    reporting,
    rolling,
    sniffing,
)
from pipelines.commands.examples import example
from pipelines.screen import say
from warehouse.errors import TraceroomError

STOPPED = 130

app = typer.Typer(
    name="traceroom", no_args_is_help=True, add_completion=True, pretty_exceptions_enable=False, rich_markup_mode="rich",
    help="Turns the logs of work that already happens into rooms where a model can practise that work.",
    epilog="Begin with: traceroom run LOGS --out out. COMMAND --help tells a command's options, with an example; "
           "docs/tutorial.md goes through it step by step.")
app.command("run")(building.run)
app.command("show")(looking.show)
app.command("ui")(browsing.ui)
app.command("report")(reporting.report)
app.command("unknowns")(looking.unknowns)
app.command("sniff")(sniffing.sniff)
app.command("tasks")(looking.tasks)
app.command("play")(acting.play)
app.command("grade")(grading.grade)
app.command("verify")(acting.verify)
app.command("serve")(acting.serve)
app.command("rollout")(rolling.rollout)
app.command("evaluate")(evaluating.evaluate)
app.command("export")(exporting.export)
app.command("release")(releasing.release)
app.command("releases")(releasing.releases)
app.command("diff")(releasing.diff)
app.command("fetch")(releasing.fetch)
app.command("withdraw")(releasing.withdraw)
app.command("collect")(releasing.collect)
app.command("forget")(forgetting.forget)
app.command("pseudonym")(naming.pseudonym)
app.command("base-image")(building.base_image)
for command in app.registered_commands:
    told = example(command.name)
    command.epilog = command.epilog or (f"Example: {told}" if told else None)


def main() -> None:
    """Run the command line and leave with its exit code. The one boundary where every error becomes a sentence."""
    try:
        app(prog_name="traceroom")
    except TraceroomError as error:
        _refuse(str(error), error.exit_code)
    except SystemExit as left:
        if left.code == STOPPED:  # typer's word for Ctrl-C
            _refuse("Stopped. What was committed stays; the same command goes on from there.", STOPPED)
        raise
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123  whoever read has gone: nothing is left to say
        sys.exit(0)
    except OSError as error:
        if os.environ.get("TRACEROOM_DEBUG"):
            traceback.print_exc()
        place = error.filename or "a file or a connection of this run"
        _refuse(f"{place}: {error.strerror or error}; make room or give access, then run again: what was committed stays.", 2)
    except Exception as error:
        if os.environ.get("TRACEROOM_DEBUG"):
            traceback.print_exc()
        what = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}"
        _refuse(f"A mistake in Traceroom, not in your logs ({what}); "
                "run again with TRACEROOM_DEBUG=1 and report what it prints.", 2)


def _refuse(sentence: str, code: int) -> None:
    from rich.markup import escape

    say(f"[bold red]✗[/] {escape(sentence)}")
    sys.exit(code)
