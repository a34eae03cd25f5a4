"""What the programs share: where the exports lie, the episodes to play, and how they say what came of it.

A program is called with the folder of the exports (`FOLDER/<exporter>/…`, `FOLDER/datasets/…`, `FOLDER/episodes.json`) and
an empty folder to work in. It raises where the consumer refuses, and prints one JSON object on its last line: `ran` (what the
consumer did, in words), and where it applies `digest`, `rewards` by the name of an episode (null: unscored) and figures.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", CUDA_VISIBLE_DEVICES="", WANDB_MODE="disabled",
                  HF_DATASETS_DISABLE_PROGRESS_BARS="1", TOKENIZERS_PARALLELISM="false", TRL_EXPERIMENTAL_SILENCE="1")
EXPORTS, WORK = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
os.environ["HF_HOME"] = str(WORK / "huggingface")


def episodes() -> list[dict[str, Any]]:
    """{"name", "task_id", "steps": [{"tool", "arguments"} | {"say"}]}: one is good, one bad, one attacks."""
    told: list[dict[str, Any]] = json.loads((EXPORTS / "episodes.json").read_text("utf-8"))
    return told


def tell(ran: str, **figures: Any) -> None:
    """Say on the last line what the consumer did."""
    print(json.dumps({"ran": ran, **figures}), flush=True)
