"""The dataset card: `README.md` beside the files, with the front matter that `datasets.load_dataset` reads
(configurations, splits).

In: the folder as it was written, its source, what was asked for and what was left. Out: the card, and `left.json`: what was
asked for, how often which reason, and each rejected row with its own. Readers take one kind of file a card: where the
table of steps is, the card's configuration is that, and the JSON lines beside it are read by their names; where it is not, each
form is a configuration. A side of a form without rows has a file but stands in no configuration, as readers refuse empty ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from env_builder.exports.exporter import DatasetSource
from env_builder.exports.steps import episodes
from warehouse.errors import InputError
from warehouse.records import SPLITS

ALL = "all forms"
"""In the place of a form: what was left before any form saw it."""
CARD, REJECTED, STEPS = "README.md", "left.json", "trajectories"
UNKNOWN = "unknown"
_FORMS = {
    "trajectories": "the table of steps that every other form is made from: one row a step",
    "sft": "successful sessions as messages and tools, for supervised fine-tuning",
    "steps": "of a site: page, goal and history, and the action that followed; what could be acted on, with what was",
    "dpo": "two actions in the same state of a task, a successful session's and a failed one's; the smallest difference first",
    "kto": "actions of successful and of failed sessions, each for itself",
    "grpo": "prompts of the published tasks, to be rolled out in the environment",
    "reward_model": "a successful and a failed session of the same task",
    "process_reward": "actions one by one, each labelled",
    "openai": "successful sessions as OpenAI's fine-tuning API takes them",
    "atif": "sessions as ATIF trajectories",
    "minari": "sessions as transitions for offline RL, in Minari's layout",
}
_LIMITS = """## Limits

- A reward of a log is a probability of success (`label_source` is `outcome`), not a measurement; `weight` says how likely the
  label is right. A reward of a rollout is what the published rubric gave (`rubric`).
- Token ids, log-probabilities and sampling parameters stand where the log holds them, and are null elsewhere.
- `held_out` is for measuring, not for training."""
_RAW = "- Privacy off: nothing has been taken out of the texts: look before you share them."
_CLEAN = """- Privacy on: pseudonyms stand in the place of people, by version `{}` of the rules (`privacy_policy`).
  Token ids and log-probabilities of logs belong to the text that was there, and are left out."""
_OF_SOURCE = ("environment", "content_digest")
Row = dict[str, Any]


def earlier_rows(out: Path, about: Mapping[str, Any]) -> list[Row]:
    """Read the rejections of an earlier export into the folder; InputError if the folder holds an export of something else."""
    place = out / REJECTED
    if not place.is_file():
        return []
    try:
        document = json.loads(place.read_text("utf-8"))
        query, rows = document["asked"], document["left"]
    except (ValueError, TypeError, KeyError):
        query, rows = None, []
    if query != json.loads(json.dumps(about)):
        raise InputError("the folder holds an export of something else", str(out), "name another with --to, or remove it")
    return list(rows)


def write(
    out: Path, source: DatasetSource, rejected: Mapping[str, pl.DataFrame], licence: str, about: Mapping[str, Any],
    earlier: Sequence[Row]
) -> list[Path]:
    """Write `left.json` and the card over what the folder holds; return both paths. `rejected`: decisions by form."""
    columns = ("form", "subject", "reason", "detail")
    rejections = [each.filter(~pl.col("kept")).select(pl.lit(form).alias("form"), *columns[1:])
                  for form, each in rejected.items()]
    rows = pl.concat([*rejections, pl.DataFrame(earlier, dict.fromkeys(columns, pl.String))]).unique().sort(columns)
    why: dict[str, dict[str, int]] = {}
    for form, reason, n in rows.group_by("form", "reason").agg(pl.col("subject").n_unique()).sort("form", "reason").iter_rows():
        why.setdefault(form, {})[reason] = n
    document = {"asked": dict(about), "counted": why, "left": rows.to_dicts()}
    (out / REJECTED).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8", newline="\n")
    names = sorted({path.name.partition(".")[0] for path in out.iterdir() if path.is_file()})
    listed = {form: [(split, path.name, n_rows) for split in SPLITS for suffix in ("parquet", "jsonl")
                     if (path := out / f"{form}.{split}.{suffix}").is_file() and (n_rows := count(path))] for form in names}
    files = {form: of_form for form, of_form in listed.items() if of_form}
    datasets = [(split, path.parent.parent.name, int(json.loads(path.read_text("utf-8"))["total_episodes"]))
                for split in SPLITS for path in sorted(out.glob(f"minari/*/*-{split.replace('_', '-')}-v0/data/metadata.json"))]
    text = "\n".join([*_front(files, licence), *_body(files | ({"minari": datasets} if datasets else {}), source, why, about)])
    (out / CARD).write_text(text + "\n", "utf-8", newline="\n")
    return [out / REJECTED, out / CARD]


def count(path: Path) -> int:
    """Rows of a file of ours: Parquet, or lines."""
    if path.suffix == ".parquet":
        return int(pl.scan_parquet(path).select(pl.len()).collect().item())
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def _front(files: dict[str, list[tuple[str, str, int]]], licence: str) -> Iterable[str]:
    yield from ("---", f"license: {json.dumps(licence)}", "task_categories:", "- reinforcement-learning", "- text-generation",
                "tags:", "- traceroom", "- tool-use", "- agent-trajectories", "configs:")
    for form, splits in (((STEPS, files[STEPS]),) if STEPS in files else files.items()):
        yield from (f"- config_name: {form}", "  data_files:")
        for split, name, _ in splits:
            yield from (f"  - split: {split}", f"    path: {name}")
    if not files:
        yield "  []"
    yield "---"


def _body(files: dict[str, list[tuple[str, str, int]]], source: DatasetSource, counted: dict[str, dict[str, int]],
          about: Mapping[str, Any]) -> Iterable[str]:
    digest = source.content_digest or "none was published"
    what = "What agents did in the tools of one service, and how well it went" if source.page_steps is None else (
        "What people did right on a web site, done again with the tools of its environment")
    yield from (f"# {source.environment}", "", f"{what}: made by "
                f"Traceroom from logs or rollouts. Content digest of the environment: `{digest}`.", "")
    if chosen := [f"{name} {', '.join(map(str, value)) if isinstance(value, list | tuple) else value}"
                  for name, value in about.items() if name not in _OF_SOURCE and value]:
        yield from (f"Of all that there was, what was asked for: {'; '.join(chosen)}.", "")
    yield from ("| form | what it is | train | validation | held_out |", "|---|---|---|---|---|")
    for form, splits in files.items():
        n_rows = {split: n for split, _, n in splits}
        yield _row(f"`{form}`", _FORMS.get(form, "another form"), *(n_rows.get(split, 0) for split in SPLITS))
    lines = next((form for form in sorted(files) if form != STEPS), None)
    if STEPS in files and lines is not None:
        yield from ("", "The card's configuration is the table of steps; a form of JSON lines is read by its files:", "",
                    f'    datasets.load_dataset("json", data_files={{"train": "{lines}.train.jsonl"}})')
    yield from ("", "## Figures", "", "| | train | validation | held_out |", "|---|---|---|---|")
    of_side = episodes(source).group_by("split").agg(
        pl.col("task_id").n_unique().alias("tasks"), pl.len().alias("episodes"),
        pl.col("good").sum().alias("episodes that succeeded"),
        pl.col("final").is_not_null().sum().alias("episodes with a label"), pl.col("final").mean().alias("mean label"))
    row_of = {row["split"]: row for row in of_side.iter_rows(named=True)}
    for figure in of_side.columns[1:]:
        yield _row(figure, *(row_of.get(split, {}).get(figure) for split in SPLITS))
    yield from ("", "## Left out, and why", "")
    for form, reasons in counted.items():
        yield f"- {form if form == ALL else f'`{form}`'}: {', '.join(f'`{reason}` {n:,}' for reason, n in reasons.items())}"
    yield from (*(() if counted else ("Nothing.",)), "", "Each with its reason: `left.json`.", "", _LIMITS,
                _CLEAN.format(source.privacy_policy) if source.privacy_policy else _RAW)


def _row(*cells: object) -> str:
    texts = (cell if isinstance(cell, str) else "" if cell is None else format(cell, ",.3f" if isinstance(cell, float) else ",")
             for cell in cells)
    return f"| {' | '.join(texts)} |"
