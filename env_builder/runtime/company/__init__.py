"""The world of a company: every field of every record of its apps, as of any instant."""

from __future__ import annotations

from .sight import PersonSight
from .world import PRESENT, CompanyState, CompanyWorld, FieldState, FieldVersion, VersionLike

__all__ = ["PRESENT", "CompanyState", "CompanyWorld", "FieldState", "FieldVersion", "PersonSight", "VersionLike"]
