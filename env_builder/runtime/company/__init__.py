"""The world of a company: every field of every record of its apps, as of any instant, and a person's desk in it."""

from __future__ import annotations

from .desk import UNDECIDED, CompanyDesk, DeskStart, ProductRefusal, Undecided
from .sight import PersonSight
from .world import PRESENT, CompanyState, CompanyWorld, FieldState, FieldVersion, VersionLike

__all__ = ["PRESENT", "UNDECIDED", "CompanyDesk", "CompanyState", "CompanyWorld", "DeskStart", "FieldState", "FieldVersion",
           "PersonSight", "ProductRefusal", "Undecided", "VersionLike"]
