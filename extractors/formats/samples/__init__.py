"""Small files, one or a few for each of our formats, with invented content."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files


def sample(name: str) -> Callable[[], bytes]:
    """Return reads the sample called `name` when it is asked to."""
    return lambda: files(__package__ or __name__).joinpath(name).read_bytes()
