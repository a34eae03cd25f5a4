"""Minari loads the exported datasets by their names, episode for episode, and samples of them lie in their spaces."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from telling import EXPORTS, tell

FOLDER = EXPORTS / "datasets" / "minari"
os.environ["MINARI_DATASETS_PATH"] = str(FOLDER)
sys.path = [path for path in sys.path if Path(path or ".").resolve() != Path(__file__).parent]

import minari  # noqa: E402

names = sorted(f"{place.parent.name}/{place.name}" for place in FOLDER.glob("*/*") if place.is_dir())
assert names, "the export holds no Minari dataset"
n_episodes = n_steps = 0
for name in names:
    dataset = minari.load_dataset(name)
    for episode in dataset.iterate_episodes():
        assert len(episode.observations) == len(episode.actions) + 1 == len(episode.rewards) + 1
        assert all(dataset.observation_space.contains(text) for text in episode.observations)
        assert all(dataset.action_space.contains(text) for text in episode.actions)
        acts = [json.loads(text) for text in episode.actions]
        assert all("say" in act or isinstance(json.loads(act["arguments"]), dict) for act in acts)
        assert bool(episode.terminations[-1]) != bool(episode.truncations[-1]) and not episode.rewards[:-1].any()
        assert episode.infos["return_to_go"][0] == episode.rewards[-1]
        n_episodes, n_steps = n_episodes + 1, n_steps + len(acts)
    assert dataset.total_episodes == len(dataset)
assert n_episodes and len(names) == len(minari.list_local_datasets())
tell(f"{n_episodes} episodes of {len(names)} datasets loaded, all in their spaces", episodes=n_episodes, steps=n_steps)
