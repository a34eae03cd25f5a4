"""The rules of behaviour in the order in which they are induced, which is the order in which a call tries them.

A rule is one function `(evidence) -> Induced`, in a module of its own but for the plain ones: it gets the steps of one version
of a tool, what the log of its service shows, and the rules before it; it returns the rules that it adds, or none. To add one,
write the module and list it below.
"""

from __future__ import annotations

from collections.abc import Callable

from env_builder.behaviour import (
    always,
    answers,
    carried,
    confirmations,
    conversions,
    edited,
    filters,
    finds,
    makes,
    parts,
    plain,
    precedents,
    refusals,
    selections,
    statuses,
    templates,
    validation,
    writes,
)
from env_builder.behaviour.evidence import Induced, ToolEvidence

INDUCERS: tuple[Callable[[ToolEvidence], Induced], ...] = (
    plain.recorded,        # first: nothing is surer than the answer on record
    validation.induce,     # arguments that the declared schema forbids: no other rule ever sees them
    selections.unlisted,   # arguments that stand in no list which they must stand in
    refusals.induce,       # before all that answers: a call that is refused does nothing
    plain.constant,        # by effect, so that these three never meet
    plain.calculation,
    plain.document,
    writes.induce,         # a document explained field by field, of tools that none of the three answers
    plain.shows,           # nothing explains it: which record an answer shows, so that a real one is understood
    answers.induce,        # of tools that may write: an expression over the arguments and the record that they name
    templates.induce,      # from here on only where nothing answers yet; a sentence of the arguments alone is the simplest
    conversions.induce,    # a number computed from those that are given
    answers.induce_unnamed,
    finds.induce,          # a record that the arguments describe
    finds.induce_mentioned, # a record that others' words describe, for the arguments that `finds` leaves
    finds.induce_nothing,  # that there is no such record
    parts.induce,          # a list, item by item
    makes.induce,          # last, beside all of them: what a call leaves behind that only later reads show
    plain.changes,
    filters.induce,        # a search whose answer those to other searches show
    selections.induce,     # what is selected from a list, of a read that no rule but `rows`, `nothing`, `filter` answers
    confirmations.induce,  # of a call that only confirms: that it works, or names what does not exist
    carried.induce,        # what the session's earlier calls gave and got
    always.induce,         # the floor: what no rule answers, but every session was told alike
    precedents.induce,     # what no rule answers, but sessions that were told and did the same were answered alike
    statuses.induce,       # nor these: what goes with a field that the session was shown last
    edited.induce,         # a list to which write calls add rows, or take them away: tried before the answer on record
)
