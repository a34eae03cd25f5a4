"""The environment at run time: ships inside every environment, standard library only, imports nothing of ours."""

from .bindings import Ask, Reply
from .environment import Environment

__all__ = ["Ask", "Environment", "Reply"]
