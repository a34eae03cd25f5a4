"""Privacy: events in, events without secrets and with pseudonyms in the place of people out.

    finding ─► people ─► carrying, cleaning
    which fields and cues name people   what is known of them   every text, with pseudonyms

Keyed and stable (`pseudonyms`, `permuting`): the same person has the same pseudonym in arguments, results, texts, row changes
and compound ids. What it sees: the texts of events. What it does not see: meaning; docs/privacy.md says what that leaves."""

from __future__ import annotations

from extractors.privacy.cleaning import Cleaner
from extractors.privacy.people import Finding, People, PersonFact
from extractors.privacy.policy import Policy
from extractors.privacy.pseudonyms import KINDS, Pseudonyms

__all__ = ["KINDS", "Cleaner", "Finding", "People", "PersonFact", "Policy", "Pseudonyms"]
