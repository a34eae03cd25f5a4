"""Which column of a file is which of our fields: by name and by shape, each column once, the surest first.

The fields of calls are chosen in `column_calls`, those of requests in `column_requests`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from extractors.column_names import named
from extractors.column_tests import (
    in_seconds,
    is_short,
    is_work,
    role_free,
    said,
    says_duration,
    says_end,
    session_shape,
    tells_tools,
)
from extractors.formats.mapped_words import kind_of, role_of
from extractors.shapes import Column

_SAID_AT_LEAST = 2.0


class Choice:
    """Columns of which some are taken."""

    def __init__(self, columns: list[Column]) -> None:
        self.columns = columns
        self._taken: set[str] = set()
        self._work: set[int] | None = None
        """Items that tell of tools; None: not known yet."""

    def take(self, *columns: Column) -> None:
        """Say that the columns are used."""
        self._taken |= {column.path for column in columns}

    def free(self) -> Iterable[Column]:
        """Columns that nothing uses yet."""
        return (column for column in self.columns if column.path not in self._taken)

    def first(self, test: Callable[[Column], bool]) -> Column | None:
        """The first free column that passes."""
        return next((column for column in self.free() if test(column)), None)

    def taken(self) -> frozenset[str]:
        """Paths of the columns that are used, to go back to."""
        return frozenset(self._taken)

    def go_back(self, taken: frozenset[str]) -> None:
        """Let those columns alone be used."""
        self._taken = set(taken)

    def best(self, name: str, test: Callable[[Column], bool], least: float = 1.0,
             shape: Callable[[Column], float] = lambda column: 0.0, inner: bool = True) -> Column | None:
        """The free column that passes and whose name, with the points of `shape`, says most; at least `least`."""
        scored = [(named(name, column) + shape(column) - 0.1 * column.depth, -number, column)
                  for number, column in enumerate(self.free())
                  if not (inner and column.is_outer) and not self._holds_taken(column) and test(column)]
        scored = [each for each in scored if each[0] >= least]
        if not scored:
            return None
        found = max(scored, key=lambda each: each[:2])[2]
        self.take(found)
        return found

    def _holds_taken(self, column: Column) -> bool:
        return any(path.startswith(f"{column.path}.") for path in self._taken)

    def session(self) -> str | None:
        """Path of the session: an id that comes again, or stands around the items."""
        def could(column: Column) -> bool:
            return column.is_scalar_id and column.presence >= 0.6 and role_free(column)
        found = self.best("session_id", could, least=2.5, inner=False, shape=session_shape)
        return path_of(found)

    def time(self) -> str | None:
        """Path of the time; of two, the one inside, and of those the one that names a beginning."""
        def could(column: Column) -> bool:
            return column.is_time and column.presence >= 0.5 and not says_end(column)
        return path_of(self.best("time", could, inner=False, shape=lambda column: 1.0 - column.is_outer))

    def unique_id(self) -> str | None:
        """Path of an id that no two items share."""
        def could(column: Column) -> bool:
            return column.is_scalar_id and column.presence == 1 and not column.repeats
        return path_of(self.best("unique_id", could))

    def position(self, session: str | None) -> str | None:
        """Path of the place in the session: whole numbers, none twice in one."""
        sessions = next((column.held for column in self.columns if column.path == session), {})

        def could(column: Column) -> bool:
            if column.presence < 1 or column.share(lambda each: str(each).isdecimal()) < 1:
                return False
            return len({(str(sessions.get(number)), str(each)) for number, each in column.held.items()}) == len(column.values)
        return path_of(self.best("position", could, least=3.0))

    def ended(self) -> str | None:
        """Path of the time of an end."""
        return path_of(self.best("ended", lambda column: column.is_time and says_end(column)))

    def identity(self) -> str | None:
        """Path of who it is about."""
        def could(column: Column) -> bool:
            return column.presence >= 0.3 and column.share(is_short) >= 0.95 and role_free(column) and not column.is_time
        return path_of(self.best("identity", could, inner=False, least=2.0))

    def service(self) -> str | None:
        """Path of the service."""
        def could(column: Column) -> bool:
            return column.presence >= 0.8 and column.is_names and column.repeats and len(column.counts) <= 10 and \
                role_free(column)
        return path_of(self.best("service", could, inner=False, least=3.0))

    def kind(self) -> Column | None:
        """The column that says what each record is."""
        def could(column: Column) -> bool:
            if not column.is_text or column.presence < 0.8 or not 2 <= len(column.counts) <= 25 or not column.repeats:
                return False
            known = [kind_of(word, {}) for word in column.counts]
            works = {"call", "result"} & set(known)
            return bool(works) or (column.kind_share >= 0.5 and len(set(known)) > 1) or tells_tools(column)
        found = self.best("kind", could, least=1.0)
        if found is not None:
            self._work = {number for number, word in found.held.items() if is_work(str(word))}
        return found

    def _is_of_work(self, column: Column) -> bool:
        """Whether most of its values stand in items that tell of tools, where that is known."""
        return self._work is None or len(self._work & set(column.held)) * 2 >= len(column.held)

    def is_beside(self, column: Column, items: set[int]) -> bool:
        """Whether it belongs to what tells of tools, which `items` do."""
        return bool(set(column.held) & items) if self._work is None else self._is_of_work(column)

    def role(self, kind: Column | None) -> Column | None:
        """The column that says who speaks; the column of the kind where it does."""
        def could(column: Column) -> bool:
            if column.presence < 0.3 or len(column.counts) > 8 or column.mean_words > 2:
                return False
            if column.is_flag:
                return any(role_of(word, {}) in ("user", "assistant") for word in column.words)
            roles = {role_of(word, {}) for word in column.counts} - {None}
            if column.is_text and column.role_share >= 0.5 and (len(roles) > 1 or column.presence > 0.9):
                return True
            return column.is_text and len(column.counts) >= 2 and column.repeats and named("role", column) >= 2 and \
                not column.is_status and column.words[-1:] not in (("type",), ("source",), ("is",)) and column.is_names
        found = self.best("role", could, shape=lambda column: 3 * column.role_share)
        if found is None and kind is not None:
            return kind
        return found

    def content(self) -> str | None:
        """Paths of what is said: the longest text, and text of other names in records without it."""
        def could(column: Column) -> bool:
            if column.is_objects or column.is_time or column.is_flag or (self._work and self._work >= set(column.held)):
                return False
            return column.is_text or column.is_parts
        found = self.best("content", could, least=0.8, shape=said)
        return self.with_others("content", found, could)

    def with_others(self, name: str, found: Column | None, could: Callable[[Column], bool]) -> str | None:
        """The path, and those of columns of that name that only records without it have."""
        if found is None:
            return None
        paths, held = [found.path], set(found.held)
        for column in list(self.free()):
            if not column.is_outer and could(column) and named(name, column) >= 2 and not held & set(column.held):
                paths.append(column.path)
                held |= set(column.held)
                self.take(column)
        return "|".join(paths)

    def says(self) -> dict[str, str]:
        """What each side says, where one record holds both."""
        found: dict[str, str] = {}
        for role in ("user", "assistant", "system"):
            column = self.best(f"{role}_says", lambda each: each.is_text and each.mean_words >= _SAID_AT_LEAST and
                               not each.is_objects and not each.is_time, least=2.0)
            if column is not None:
                found[role] = column.path
        if "user" in found and "assistant" in found:
            return {role: found[role] for role in ("system", "user", "assistant") if role in found}
        self._taken -= set(found.values())
        return {}

    def tool(self, is_call: bool = False) -> Column | None:
        """The column of names of tools."""
        def could(column: Column) -> bool:
            if column.is_methods or column.is_targets or column.is_status or column.is_time or "model" in column.words:
                return False
            return column.is_names and role_free(column) and len(column.counts) <= max(3, 0.9 * len(column.values))
        return self.best("tool", could, least=1.0 if is_call else 2.0)

    def take_inside(self, paths: str) -> None:
        """What is inside an object that is taken as a whole is no field of its own."""
        for path in paths.split("|"):
            self._taken |= {column.path for column in self.columns if column.path.startswith(f"{path}.")}

    def metrics(self) -> dict[str, str]:
        """Durations, models and token counts."""
        found = {}
        latency = self.best("latency", lambda column: column.is_number and not column.is_time and column.mean < 1e8 and
                            says_duration(column))
        if latency is not None:
            found["latency_s" if in_seconds(latency) else "latency_ms"] = latency.path
        model = self.best("model", lambda column: column.is_text and column.mean_words <= 2 and "model" in column.words[-2:])
        if model is not None:
            found["model"] = model.path
        for name in ("input_tokens", "output_tokens"):
            counts = self.best(name, lambda column: column.is_number and not {"tokens", "token"}.isdisjoint(
                (*column.words, *column.outer_words)))
            if counts is not None:
                found[name] = counts.path
        return found

    def rating(self) -> Column | None:
        """The column of a rating."""
        return self.best("rating", lambda column: column.is_number or column.is_flag or len(column.counts) <= 6, least=2.0)

    def event_name(self) -> Column | None:
        """The column that names what happened."""
        return self.best("event", lambda column: column.is_text and column.presence >= 0.9 and column.mean_words <= 5 and
                         not column.is_time and role_free(column) and (column.repeats or len(column.values) < 5), least=2.0)

    def payload(self) -> str | None:
        """Path of what an event carries."""
        return path_of(self.best("payload", lambda column: column.is_objects, least=2.0))


def path_of(column: Column | None) -> str | None:
    """The path of a column, where there is one."""
    return None if column is None else column.path
