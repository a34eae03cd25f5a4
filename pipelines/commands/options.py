"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from env_builder.runtime.perturbations import SWITCHES
from pipelines.commands.completing import complete_adapter, complete_environment, complete_perturbation

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document to stdout.")]
Out = Annotated[str, typer.Option("--out", help="Output folder of the run: warehouse, environments, rewards, datasets.")]
RunConfig = Annotated[str | None, typer.Option("--config", help="TOML file that the run used.", show_default=False)]

RepositoryPaths = Annotated[list[str] | None, typer.Option(
    "--repository",
    help="Git repository that the sessions worked on: a bundle, a bare clone, a checkout or an address. May be repeated.",
    show_default=False)]

LedgerFolder = Annotated[str | None, typer.Option(
    "--ledger", help="Take over the ledger of epochs of this other --out, if --out has none yet: its ids and its split.",
    show_default=False)]
SessionLimit = Annotated[int | None, typer.Option(
    "--limit", help="Build from this many sessions at most, the newest.", show_default=False, min=1)]

Directory = Annotated[Path, typer.Argument(
    help="Environment folder: OUT/environments/NAME.", autocompletion=complete_environment)]
Rewards = Annotated[Path | None, typer.Option(help="Rewards folder. Default: OUT/rewards/NAME.", show_default=False)]
Mode = Annotated[str, typer.Option("--mode", help="Scale of the reward: eval in [0, 1]; train in [-1, 1], with penalties.")]
Seed = Annotated[int, typer.Option(help="Random seed; 0 replays exactly as recorded.")]
Perturbations = Annotated[list[str] | None, typer.Option(
    "--perturbation", help=f"Perturbation of the tools' behaviour: {', '.join(SWITCHES)}. May be repeated.",
    show_default=False, autocompletion=complete_perturbation)]
Bind = Annotated[list[str] | None, typer.Option(
    "--bind", help="TOOL=SOURCE: let a real tool answer calls without a recorded answer. May be repeated.",
    show_default=False, autocompletion=complete_perturbation)]
BindingsConfig = Annotated[str | None, typer.Option(
    "--config", help="TOML file whose `bindings` table applies too; --bind takes precedence.", show_default=False)]
AskModel = Annotated[bool, typer.Option(
    "--ask", help="Let the model of TRACEROOM_MODEL answer unknown calls; such answers are marked and not scored.")]

TaskSplit = Annotated[Literal["train", "validation", "held_out"] | None, typer.Option(
    "--split", help="Use only tasks of this split.", show_default=False)]
TaskStanding = Annotated[Literal["open", "solved", "unsolved"] | None, typer.Option(
    "--standing", help="Use only tasks that all policies solved in these rollouts (solved: the regression set), that none "
                       "solved (unsolved), or all others (open).", show_default=False)]
Temperature = Annotated[float | None, typer.Option(help="Sampling temperature of the model.", show_default="the endpoint's")]
AgentOption = Annotated[str | None, typer.Option(
    "--agent", help="Your own agent: a command line, or the URL of a service. The policy is its model.", show_default=False)]
Adapter = Annotated[list[str] | None, typer.Option(
    "--adapter", help="Framework whose tool functions are replaced in the agent's process, or auto. May be repeated.",
    show_default=False, autocompletion=complete_adapter)]
AgentTalks = Annotated[Literal["auto", "text", "tools"], typer.Option(
    "--talk", help="How the agent speaks to the user: by its model's text, or by the tools say and finish; auto: by tools "
                   "if it opens the MCP endpoint.")]
AgentTimeout = Annotated[float, typer.Option("--agent-timeout", min=0.1, help="Maximum seconds per episode of the agent.")]
RolloutFolder = Annotated[Path | None, typer.Option(
    "--out", help="Folder of the rollouts. Default: OUT/rollouts/NAME.", show_default=False)]

RegistryPath = Annotated[str | None, typer.Option(
    "--registry", help="Registry: a folder, or an s3://, gs:// or az:// address. Default: as in --config, else OUT/releases.",
    show_default=False)]
Why = Annotated[str, typer.Option("--why", help="Reason, for the promotion log.")]
By = Annotated[str | None, typer.Option("--by", help="Author. Default: this machine's user.", show_default=False)]
