"""What NeMo Gym starts as `app.py`: the resources server of the package that this folder is."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
KitServer = importlib.import_module(f"{HERE.name}.nemo_gym_room").KitServer

if __name__ == "__main__":
    KitServer.run_webserver()
