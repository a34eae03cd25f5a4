"""An exported environment as a taskset: see verifiers_taskset.py. Copied as the package's `__init__.py`."""

from .verifiers_taskset import RoomEnv, RoomTaskset

__all__ = ["RoomEnv", "RoomTaskset"]
