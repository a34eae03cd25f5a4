"""Hostile texts and JSON values, sampled by a seed."""

from __future__ import annotations

import json
import random
from typing import Any

TEXTS = (
    "", " ", "\0", "\ud800", "\udfff x", "ok \ud83d", "\ufeff", "\u202e", "\u2028", "😀" * 3, "a" * 5000, "%s%n", "<script>",
    "../../etc/passwd", "'; drop table x; --", "{{7*7}}", "\r\nX: y", "NaN", "null", "-1", "1e999", "[" * 500, "{\"a\":" * 300,
    "\x1b[2J", "e" + "\u0301" * 200, "__class__", "constructor")
NUMBERS = (0, -1, 1.5, 1e308, -1e308, 10 ** 30, 10 ** 400, 2 ** 63, float("nan"), float("inf"), True, False, None)


class Fuzz(random.Random):
    """A source of hostile values."""

    def text(self) -> str:
        """Return a text: a hostile one, or random characters of all planes."""
        if self.random() < 0.7:
            return self.choice(TEXTS)
        return "".join(chr(self.choice((self.randrange(128), self.randrange(0xD700, 0xE100), self.randrange(0x110000))))
                       for _ in range(self.randrange(12)))

    def value(self, depth: int = 3) -> Any:
        """Return a JSON value, or what Python's json takes for one."""
        kind = self.randrange(4 if depth else 2)
        if kind == 0:
            return self.text()
        if kind == 1:
            return self.choice(NUMBERS)
        if kind == 2:
            return [self.value(depth - 1) for _ in range(self.randrange(4))]
        return {self.text(): self.value(depth - 1) for _ in range(self.randrange(4))}

    def changed(self, value: Any) -> Any:
        """Return a JSON value with a part replaced, dropped or added."""
        if isinstance(value, dict) and value and self.random() < 0.8:
            name = self.choice(list(value))
            if self.random() < 0.15:
                return {key: each for key, each in value.items() if key != name}
            if self.random() < 0.1:
                return {**value, self.text(): self.value()}
            return {**value, name: self.changed(value[name])}
        if isinstance(value, list) and value and self.random() < 0.8:
            position = self.randrange(len(value))
            return [*value[:position], self.changed(value[position]), *value[position + 1:]]
        return self.value()

    def written(self, value: Any) -> bytes:
        """Return JSON text of a value, sometimes broken or in another encoding."""
        text = json.dumps(value, ensure_ascii=self.random() < 0.7)
        data = text.encode("utf-8", "surrogatepass")
        damage = self.random()
        if damage < 0.05 and data:
            position = self.randrange(len(data))
            return data[:position] + bytes([self.randrange(256)]) + data[position + 1:]
        if damage < 0.08:
            return data[:self.randrange(len(data) + 1)]
        if damage < 0.1:
            return text.encode("utf-16", "surrogatepass")
        return data if damage < 0.97 else b"[" * 20_000
