"""The room at run time: ships inside every environment, standard library only, imports nothing of ours."""

from .environment import Environment

__all__ = ["Environment"]
