"""The unpacked content of a log file, read as it is needed.

In: an open file, packed or not. Out: bytes in order, as many as are asked for; UTF-16 is recoded to UTF-8. What a damaged file
holds before its damage is given like any other; the damage is told beside it. What it does not see: lines and formats.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

from extractors import containers

_STEP = 1 << 22
_PACKED_STEP = 1 << 18
_PACKED_MOST, _PACKED_RATIO = 1 << 30, 300
"""A packed file that unpacks to more than both is a bomb."""
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class Stream:
    """The unpacked content of a file. Errors: OSError where the disk or the connection fails."""

    def __init__(self, file: BinaryIO, n_bytes: int) -> None:
        self._file = file
        self._stream = containers.stream(file)
        self._packed = self._stream is not file
        self._read: Callable[[int], bytes] = getattr(self._stream, "read1" if self._packed else "read")
        self._most = max(_PACKED_MOST, _PACKED_RATIO * n_bytes)
        self._read_all = False
        self.damage: str | None = None
        """What is wrong with the file after what is held: there is no more of it."""
        self.held = b""
        """Read, not taken."""
        self.n_taken = 0
        self.fill(len(_UTF_16[0]))
        if self.held[:2] in _UTF_16:
            self._recode()

    @property
    def ended(self) -> bool:
        """Whether all was taken."""
        return not self.held and self.fill(1)

    def fill(self, n_bytes: int) -> bool:
        """Hold at least `n_bytes` if there are so many; True: what is held is all that is left."""
        missing = n_bytes - len(self.held)
        if missing > 0 and not self._read_all:
            more = [self.held]
            while missing > 0 and (step := self._next(missing)):
                more.append(step)
                missing -= len(step)
            self.held = b"".join(more)
            if self._packed and self.n_taken + len(self.held) > self._most:
                self._end_with(f"it unpacks to more than {self._most >> 20} MiB")
        return self._read_all or not self._more()

    def _more(self) -> bool:
        step = self._next(1)
        self.held += step
        return bool(step)

    def _next(self, n_bytes: int) -> bytes:
        """At most so many bytes, none at the end. Of a packed file in small steps: what a step that fails unpacked is lost."""
        if self._read_all:
            return b""
        try:
            step = self._read(min(n_bytes, _PACKED_STEP if self._packed else _STEP))
        except containers.DAMAGED as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            self._end_with(str(error))
            return b""
        self._read_all = not step
        return bytes(step)

    def _end_with(self, damage: str) -> None:
        self.damage, self._read_all = damage, True

    def take(self, n_bytes: int) -> bytes:
        """Take what is held."""
        taken, self.held = self.held[:n_bytes], self.held[n_bytes:]
        self.n_taken += len(taken)
        return taken

    def line_end(self, most: int) -> int:
        """Where the line that is held ends, 0 where it is longer than `most`."""
        looked = 0
        while True:
            whole = self.fill(min(len(self.held) + _STEP, most))
            at = self.held.find(b"\n", looked, most) + 1
            if at or whole or len(self.held) >= most:
                return at or (len(self.held) if whole and len(self.held) <= most else 0)
            looked = len(self.held)

    def pass_over_line(self) -> int:
        """Take a line of any length without keeping it; gives its length."""
        before = self.n_taken
        while (at := self.held.find(b"\n") + 1) == 0 and self.held:
            self.take(len(self.held))
            self.fill(_STEP)
        self.take(at)
        return self.n_taken - before

    def begin(self, n_bytes: int) -> bytes:
        """What the file begins with as it lies there; nothing can be read afterwards."""
        self._file.seek(0)
        return self._file.read(n_bytes)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _recode(self) -> None:
        """UTF-16 to UTF-8, as a whole."""
        if not self.fill(containers.MOST_BYTES + 1):
            self._refuse(f"it is UTF-16 of more than {containers.MOST_BYTES >> 20} MiB; write it as UTF-8")
            return
        try:
            self.held = self.held.decode("utf-16").encode()
        except UnicodeError as error:
            self._refuse(f"it begins as UTF-16 but is none ({error})")

    def _refuse(self, damage: str) -> None:
        self.held = b""
        self._end_with(damage)
