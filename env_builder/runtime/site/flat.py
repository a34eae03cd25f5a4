"""A page's tree as lists in the page's order, so that an element has a number and nothing needs to be searched.

A tree may hold the same `Element` twice (its parts are shared), hence numbers and not identity. Elements deeper than `DEEPEST`
levels are left out: no page of a person's is so deep, and what walks a page does so by recursion.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from .trees import Element

DEEPEST = 160
CONTROLS = ("button", "input", "select", "textarea")
Child: TypeAlias = int | str
"""The number of an element, or a text."""


class FlatPage:
    """A page as it was answered; immutable."""

    __slots__ = ("attributes", "by_id", "children", "controls", "ends", "of_tag", "parents", "root", "tags")

    def __init__(self, root: Element) -> None:
        self.root = root
        self.tags: list[str] = []
        self.attributes: list[dict[str, str]] = []
        self.children: list[list[Child]] = []
        self.parents: list[int] = []
        """Of the root -1."""
        self.by_id: dict[str, int] = {}
        """The first element of each id."""
        depths: list[int] = []
        waiting: list[tuple[Element, int, int]] = [(root, -1, 0)]
        while waiting:
            element, parent, slot = waiting.pop()
            number = len(self.tags)
            depth = depths[parent] + 1 if parent >= 0 else 0
            self.tags.append(element.tag)
            self.attributes.append(element.attributes)
            self.parents.append(parent)
            depths.append(depth)
            if parent >= 0:
                self.children[parent][slot] = number
            if "id" in element.attributes:
                self.by_id.setdefault(element.attributes["id"], number)
            below: list[Child] = []
            self.children.append(below)
            inner: list[tuple[Element, int, int]] = []
            for place, child in enumerate(element.children):
                if isinstance(child, str):
                    below.append(child)
                else:
                    below.append("")
                    inner.append((child, number, place))
            if inner and depth < DEEPEST:
                waiting += inner[::-1]
        self.of_tag: dict[str, list[int]] = {}
        for number, tag in enumerate(self.tags):
            self.of_tag.setdefault(tag, []).append(number)
        self.controls = sorted(each for tag in CONTROLS for each in self.of_tag.get(tag, ()))
        """Buttons, inputs, selects and textareas."""
        self.ends = [number + 1 for number in range(len(self.tags))]
        """After the last element within each."""
        for number in range(len(self.tags) - 1, 0, -1):
            self.ends[self.parents[number]] = max(self.ends[self.parents[number]], self.ends[number])

    def ancestors(self, number: int) -> Iterator[int]:
        """Yield the elements around one, innermost first."""
        parent = self.parents[number]
        while parent >= 0:
            yield parent
            parent = self.parents[parent]

    def closest(self, number: int, *tags: str) -> int | None:
        """Return the element itself, or the innermost around it, that has one of the tags."""
        while number >= 0:
            if self.tags[number] in tags:
                return number
            number = self.parents[number]
        return None

    def below(self, number: int) -> range:
        """Return the elements within one."""
        return range(number + 1, self.ends[number])

    def elements_of(self, number: int) -> list[int]:
        """Return the elements directly within one."""
        return [child for child in self.children[number] if isinstance(child, int)]

    def first(self, tag: str) -> int | None:
        """Return the page's first element of a tag."""
        return next(iter(self.of_tag.get(tag, ())), None)

    def text(self, number: int) -> str:
        """Return all text within an element, spaces as they are."""
        return "".join(child if isinstance(child, str) else self.text(child) for child in self.children[number])

    @property
    def title(self) -> str:
        """Return the page's title, as a tab shows it."""
        number = next((each for each in self.of_tag.get("title", ()) if not self._in_picture(each)), None)
        return " ".join(self.text(number).split()) if number is not None else ""

    def _in_picture(self, number: int) -> bool:
        return any(self.tags[each] == "svg" for each in self.ancestors(number))
