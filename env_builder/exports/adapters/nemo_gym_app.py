"""What NeMo Gym starts as `app.py`: the resources server of the package that this folder is."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
RoomServer = importlib.import_module(f"{HERE.name}.nemo_gym_room").RoomServer

if __name__ == "__main__":
    RoomServer.run_webserver()
