"""Episodes as Minari datasets for offline RL, one a split, in Minari's own Arrow layout (version 0.5.4): needs only pyarrow.

Out: `minari/traceroom/NAME-SPLIT-v0/data`, with actions, observations and `infos` as docs/datasets.md describes them: there is
one more observation than actions. The reward stands on the last step. With `DatasetSource.pad_to` shorter episodes go on with
empty steps to that length (longer ones stay); these are `padded`, and come after the step that terminates. Spaces are texts of
the characters that occur. Rejected, with a decision: episodes without a label, and those that no chat format can express.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from env_builder.exports.conversations import LoggedConversation, Rejections, accepted, acts, dumps, rejected
from env_builder.exports.exporter import DatasetSource, Exported, Exporter
from warehouse.records import SPLITS

FOLDER, NAMESPACE, VERSION = "minari", "traceroom", "0.5.4"
_INFOS = pa.struct([("return_to_go", pa.float64()), ("weight", pa.float64()), ("padded", pa.bool_())])
_SCHEMA = pa.schema([
    ("observations", pa.string()), ("actions", pa.string()), ("rewards", pa.float64()), ("terminations", pa.bool_()),
    ("truncations", pa.bool_()), ("infos", _INFOS)])
Row = dict[str, Any]


class _Space:
    """A text space that grows with what is put into it."""

    def __init__(self) -> None:
        self.length, self.characters = 1, set("{}")

    def add(self, texts: list[str]) -> None:
        for text in texts:
            self.length = max(self.length, len(text))
            self.characters.update(text)

    def description(self) -> str:
        return json.dumps(
            {"type": "Text", "max_length": self.length, "min_length": 0, "charset": "".join(sorted(self.characters))})


def _write(out: Path, source: DatasetSource) -> Exported:
    missed: Rejections = []
    places = []
    for split in SPLITS:
        name = f"{source.environment}-{split.replace('_', '-')}-v0"
        place = out / FOLDER / NAMESPACE / name
        _write_side(place / "data", f"{NAMESPACE}/{name}", source, accepted(source, split, missed, _unlabelled))
        if (place / "data").is_dir():
            places.append(place)
    return Exported(sorted(places), rejected(missed))


def _unlabelled(episode: LoggedConversation) -> str | None:
    return "no_label" if episode.about["final"] is None else None


def _write_side(data: Path, name: str, source: DatasetSource, episodes: Iterator[LoggedConversation]) -> None:
    shutil.rmtree(data, ignore_errors=True)
    observed, done = _Space(), _Space()
    n_episodes = n_steps = n_bytes = 0
    for place, episode in enumerate(episodes):
        messages = episode.messages
        places = [*acts(messages), len(messages)]
        observations = [dumps(messages[:places[0]])] + [dumps(messages[place + 1:after]) for place, after in pairwise(places)]
        actions = [_action(messages[place]) for place in places[:-1]]
        n_padded = max(0, source.pad_to - len(actions))
        observations, actions = (observations + ["[]"] * n_padded, actions + ["{}"] * n_padded)
        observed.add(observations)
        done.add(actions)
        folder = data / str(place)
        folder.mkdir(parents=True)
        final, cut_off = episode.about["final"], bool(episode.about["cut_off"])
        last, rows = len(places) - 2, range(len(observations))
        columns = {
            "observations": observations, "actions": [*actions, None],
            "rewards": [final if row == last else 0.0 for row in rows],
            "terminations": [row == last and not cut_off for row in rows],
            "truncations": [row == last and cut_off for row in rows],
            "infos": [{"return_to_go": final * source.discount ** max(0, last - row) if row <= last else 0.0,
                       "weight": episode.about["weight"], "padded": row > last + 1} for row in rows]}
        with pa.ipc.new_file(str(folder / "part-0.arrow"), _SCHEMA) as file:
            file.write_batch(pa.RecordBatch.from_pydict(columns, schema=_SCHEMA))
        (folder / "metadata.json").write_text(
            dumps({"id": place, "total_steps": len(actions), "session_id": episode.about["session_id"],
                   "task_id": episode.about["task_id"]}), "utf-8")
        n_episodes, n_steps = n_episodes + 1, n_steps + len(actions)
        n_bytes += sum(path.stat().st_size for path in folder.iterdir())
    if n_episodes:
        (data / "metadata.json").write_text(json.dumps({
            "total_episodes": n_episodes, "total_steps": n_steps, "data_format": "arrow", "jpeg_encoding": True,
            "observation_space": observed.description(), "action_space": done.description(), "dataset_id": name,
            "code_permalink": "unknown",
            "author": ["unknown"], "author_email": ["unknown"], "algorithm_name": "what acted in the logs or rollouts",
            "description": f"{source.environment}, environment {source.content_digest}", "minari_version": VERSION,
            "dataset_size": round(n_bytes / 1e6, 1)}), "utf-8")


def _action(message: Row) -> str:
    speech = {"say": message["content"]} if message["content"] else {}
    called = ({"tool": call["function"]["name"], "arguments": call["function"]["arguments"]}
              for call in message.get("tool_calls", ()))
    return dumps({**speech, **next(called, {})})


EXPORTER = Exporter("minari", _write, by_default=False)
