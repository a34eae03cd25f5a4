"""An exported environment as a taskset: see verifiers_taskset.py. Copied as the package's `__init__.py`."""

from .verifiers_taskset import KitEnv, KitTaskset

__all__ = ["KitEnv", "KitTaskset"]
