"""The command line: `traceroom`. Messages on stderr, data on stdout.

Exit codes: 0 done; 1 it ran and a gate failed; 2 it could not run. Each command is a function in `pipelines/commands` that
loads what it needs when it is called, so that `--help` answers at once.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from functools import cache
from typing import Annotated

import typer
from typer.core import TyperCommand
from typer.main import get_command

from pipelines import screen
from pipelines.commands import (
    acting,
    asking,
    auditing,
    building,
    comparing,
    diagnosing,
    forgetting,
    inspecting,
    receiving,
    releasing,
    reviewing,
    rolling,
    sourcing,
    transferring,
    trying,
)
from pipelines.screen import say
from warehouse.errors import TraceroomError
from warehouse.permissions import private

STOPPED = 130
_ENVIRONMENT = "out/environments/main"
COMMANDS: tuple[tuple[str, Callable[..., None], str], ...] = (
    ("run", building.run, "/var/log/agents --out out"),
    ("receive", receiving.receive, "--inbox inbox"),
    ("show", inspecting.show, "--out out --rejected --stage rewards"),
    ("ui", inspecting.ui, "--out out"),
    ("report", inspecting.report, "--out out"),
    ("review", reviewing.review, "out --limit 10 --export cases.jsonl"),
    ("coverage", inspecting.coverage, "--out out"),
    ("sniff", inspecting.sniff, "/var/log/agents/today.jsonl"),
    ("audit", auditing.audit, "/var/log/agents"),
    ("tasks", inspecting.tasks, _ENVIRONMENT),
    ("play", acting.play, f"{_ENVIRONMENT} 3f0c --script moves.jsonl"),
    ("grade", acting.grade, f"{_ENVIRONMENT} journals.jsonl --steps --json"),
    ("verify", acting.verify, f"{_ENVIRONMENT} --deep"),
    ("attack", acting.attack, f"{_ENVIRONMENT} 3f0c"),
    ("try", trying.try_file, "rubrics/open-a-door.toml --out out"),
    ("serve", acting.serve, f"{_ENVIRONMENT} --port 8765 --journals journals.jsonl"),
    ("rollout", rolling.rollout, f"{_ENVIRONMENT} --policy openai:MODEL@http://127.0.0.1:8000/v1 --group 8"),
    ("test", comparing.compare_policy, f"{_ENVIRONMENT} --policy script:policy.py --baseline baseline.json"),
    ("evaluate", rolling.evaluate, f"{_ENVIRONMENT} --policy script:policy.py --log out/rollouts/main"),
    ("transfer", transferring.transfer_results, f"{_ENVIRONMENT} --matrix real.jsonl"),
    ("shopping", asking.shopping, f"{_ENVIRONMENT} --limit 20 --export items.jsonl"),
    ("ask-real", asking.ask_real, "items.jsonl --bind http:http://127.0.0.1:9000/call --to answers.jsonl"),
    ("export", building.export, f"datasets {_ENVIRONMENT} --to data --form dpo --split train"),
    ("release", releasing.release, "--out out --why 'more feedback'"),
    ("releases", releasing.releases, "--out out --pin paper=3f0c"),
    ("diff", releasing.diff, "paper current --out out"),
    ("pull", releasing.pull, "current --to here --registry s3://bucket/releases"),
    ("yank", releasing.yank, "3f0c --why 'a customer asked for it' --out out"),
    ("gc", releasing.gc, "--out out --keep 5 --dry-run"),
    ("forget", forgetting.forget, "--subject - --out out --dry-run"),
    ("relearn", forgetting.relearn, "--out out --service helpdesk"),
    ("pseudonym", forgetting.pseudonym, "'Emma Smith' --kind name"),
    ("base-image", building.base_image, "--suite bookworm"),
    ("doctor", diagnosing.doctor, "--out out"),
    ("sources add", sourcing.add, "support langfuse --project support --config traceroom.toml"),
    ("sources list", sourcing.list_sources, "--config traceroom.toml"),
    ("sources test", sourcing.test, "support --config traceroom.toml"),
    ("sources pull", sourcing.pull, "support --since 2026-03-01 --config traceroom.toml"),
)
"""Name (of a command in a group: GROUP COMMAND), function, and arguments of the example below its help."""
GROUPS = {"sources": "Pull logs from the platforms that hold them (docs/howto/sources.md)."}
"""Groups of commands, with their help."""
FORMER_COMMANDS = {"collect": "gc", "fetch": "pull", "unknowns": "coverage", "withdraw": "yank"}
"""Former names of commands and options; accepted, hidden, for one release (CHANGELOG.md)."""
FORMER_OPTIONS = {
    "--band": "--difficulty", "--condition": "--perturbation", "--left": "--rejected", "--n": "--tasks", "--on": "--executor",
    "--only": "--include", "--without": "--exclude"}


class AliasedCommand(TyperCommand):
    """A command that also takes the former names of its options; its help shows the present ones."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Rename former options, then parse."""
        names = {name for parameter in self.params for name in parameter.opts}
        end = args.index("--") if "--" in args else len(args)
        renamed = []
        for argument in args[:end]:
            option, equals, value = argument.partition("=")
            is_former = option not in names and FORMER_OPTIONS.get(option) in names
            renamed.append(f"{FORMER_OPTIONS[option]}{equals}{value}" if is_former else argument)
        return super().parse_args(ctx, [*renamed, *args[end:]])


app = typer.Typer(
    name="traceroom", no_args_is_help=True, add_completion=True, pretty_exceptions_enable=False, rich_markup_mode="rich",
    epilog="Begin with: traceroom run LOGS --out out. COMMAND --help lists a command's options, with an example; "
           "docs/tutorial.md goes through it step by step.")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"traceroom {version('traceroom')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[bool, typer.Option(
        "--version", callback=_print_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Turn the logs of work that already happens into environments where a model can practise that work."""


_TYPERS = {"": app}
for group, sentence in GROUPS.items():
    _TYPERS[group] = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help=sentence)
    app.add_typer(_TYPERS[group], name=group)
for command, function, arguments in COMMANDS:
    group, _, name = command.rpartition(" ")
    _TYPERS[group].command(name, cls=AliasedCommand, epilog=f"Example: traceroom {command} {arguments}")(function)
    for former, present in FORMER_COMMANDS.items():
        if present == command:
            app.command(former, cls=AliasedCommand, hidden=True)(function)


_read_commands = cache(get_command)
"""A process that carries out several command lines reads the signatures of all commands once."""


def main() -> None:
    """Run the command line and exit with its code. The one boundary where every error becomes a sentence."""
    screen.begin()
    try:
        with private():
            _read_commands(app)(prog_name="traceroom")
    except TraceroomError as error:
        _fail(str(error), error.exit_code, error=error)
    except SystemExit as exiting:
        if exiting.code == STOPPED:  # typer's word for Ctrl-C
            _fail("Stopped. What was committed stays; run the same command again to continue.", STOPPED)
        raise
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123  the reader has gone
        sys.exit(0)
    except OSError as error:
        path = error.filename or "a file or a connection of this run"
        why = error.strerror or error
        _fail(f"{path}: {why}; make room or give access, then run again: what was committed stays.", 2, True)
    except Exception as error:
        what = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}"
        _fail(f"A mistake in Traceroom, not in your logs ({what}); "
              "run again with TRACEROOM_DEBUG=1 and report what it prints.", 2, True)


def _fail(sentence: str, code: int, is_unexpected: bool = False, error: TraceroomError | None = None) -> None:
    """Exit with the sentence on stderr; under --json also with a document on stdout, unless the command printed one."""
    from rich.markup import escape

    if "--json" in sys.argv and not screen.has_printed_data():
        parts = (sentence, "", "") if error is None else (error.what, error.where, error.hint)
        screen.data({"error": {**dict(zip(("what", "where", "hint"), parts, strict=True)), "exit_code": code}})
    if is_unexpected and os.environ.get("TRACEROOM_DEBUG"):
        traceback.print_exc()
    say(f"[bold red]✗[/] {escape(sentence)}")
    sys.exit(code)
