"""The world of a company: every field of every record of its apps, as of any instant, and a person's desk in it."""

from __future__ import annotations

from .desk import UNDECIDED, CompanyDesk, DeskStart, PossibleWrite, ProductRefusal, Undecided, UnwordedRefusal
from .ongoing import OngoingWorld
from .sight import PersonSight
from .supposing import open_what_may_follow
from .world import PRESENT, CompanyState, CompanyWorld, FieldState, FieldVersion, VersionLike

__all__ = ["PRESENT", "UNDECIDED", "CompanyDesk", "CompanyState", "CompanyWorld", "DeskStart", "FieldState", "FieldVersion",
           "OngoingWorld", "PersonSight", "PossibleWrite", "ProductRefusal",
           "Undecided", "UnwordedRefusal", "VersionLike", "open_what_may_follow"]
