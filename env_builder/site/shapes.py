"""Pages of one route in (squeezed trees), their template out; a page in, what of it the template explains.

A template is a tree. Its texts and attributes are constant where all pages agree, else *places*. Its children stand in an
order: one that every page has, one that some pages have, or *rows*: a run of siblings of the same tag and class of which pages
have different numbers, or which are alike below and different in content. All rows of all pages are examples of one template.
Sees: structure. Does not see: what gives a place its value; groups of rows (`dt`, `dd`, `dt`, `dd`); order without meaning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Literal, TypeAlias

from env_builder.runtime.site.trees import Element, Node

Signature: TypeAlias = tuple[str, str]
"""Tag and class of an element; of a text the empty tag."""
Number: TypeAlias = Literal["one", "maybe", "rows"]
_TEXT: Signature = ("", "")
ANY: Signature = ("*", "")
"""Of a child that takes every node."""


@dataclass(slots=True)
class TextShape:
    """A text of a template."""

    constant: str | None
    """None: a place."""


@dataclass(slots=True)
class ElementShape:
    """An element of a template."""

    tag: str
    constants: dict[str, str] = field(default_factory=dict)
    """Attributes that every page has with this value."""
    places: set[str] = field(default_factory=set)
    """Attributes whose value differs, or that only some pages have."""
    order: list[str] = field(default_factory=list)
    """All names of attributes, in an order that most elements have."""
    children: list[ChildShape] = field(default_factory=list)
    n_examples: int = 0
    """Elements that it was made of."""


@dataclass(slots=True)
class ChildShape:
    """A child of an element of a template, or all rows that stand there."""

    signature: Signature
    number: Number
    shape: ElementShape | TextShape


@dataclass(slots=True)
class PageFit:
    """What of a page a template explains."""

    n_places: int = 0
    """Values in places: texts and attributes."""
    n_constants: int = 0
    """Texts and attributes that are as the template has them."""
    n_changed: int = 0
    """Texts and attributes that are constant in the template and other in the page."""
    n_surplus: int = 0
    """Texts and attributes of elements of which the template knows nothing."""
    n_missing: int = 0
    """Children that every page had so far, and this one has not."""

    @property
    def has_structure(self) -> bool:
        """Whether every element is where the template has one, and none is missing."""
        return self.n_surplus == 0 and self.n_missing == 0

    @property
    def fits(self) -> bool:
        """Whether filling places alone can make this page of the template."""
        return self.has_structure and self.n_changed == 0

    @property
    def coverage(self) -> float:
        """Share of the page's texts and attributes that are a place's value or constant as the template has them."""
        explained = self.n_places + self.n_constants
        return explained / max(explained + self.n_changed + self.n_surplus, 1)


def learn_template(pages: Sequence[Element]) -> ElementShape:
    """Return the template of pages of one route. Errors: ValueError without a page, or for pages of different roots."""
    if len({page.tag for page in pages}) != 1:
        raise ValueError("a template needs pages, all with the same root element")
    return _element_shape(pages)


def _element_shape(examples: Sequence[Element]) -> ElementShape:
    names = _ordered_names(examples)
    shape = ElementShape(examples[0].tag, order=names, n_examples=len(examples))
    for name in names:
        values = {element.attributes.get(name) for element in examples}
        value = values.pop()
        if values or value is None:
            shape.places.add(name)
        else:
            shape.constants[name] = value
    for signature, runs in _aligned([_runs(element.children) for element in examples]):
        shape.children += _child_shapes(signature, runs, len(examples))
    return shape


def _ordered_names(examples: Sequence[Element]) -> list[str]:
    """Return the names of attributes; one that few elements have stands behind the one before it there."""
    orders = Counter(tuple(element.attributes) for element in examples)
    names: list[str] = []
    for order, _ in orders.most_common():
        for index, name in enumerate(order):
            if name not in names:
                names.insert(names.index(order[index - 1]) + 1 if index else 0, name)
    return names


def _child_shapes(signature: Signature, runs: Sequence[Sequence[Node]], n_examples: int) -> Iterator[ChildShape]:
    """Yield the children that stand where these runs do; `runs` are those of the examples that have one."""
    lengths = {len(run) for run in runs}
    is_everywhere = len(runs) == n_examples
    if len(lengths) == 1 and is_everywhere and not _are_rows(runs):
        for nodes in zip(*runs, strict=True):
            yield ChildShape(signature, "one", _shape(nodes))
        return
    number: Number = "rows" if max(lengths) > 1 else "maybe"
    yield ChildShape(signature, number, _shape([node for run in runs for node in run]))


def _shape(nodes: Sequence[Node]) -> ElementShape | TextShape:
    texts = {node for node in nodes if isinstance(node, str)}
    if texts:
        return TextShape(texts.pop() if len(texts) == 1 else None)
    return _element_shape([node for node in nodes if isinstance(node, Element)])


def _are_rows(runs: Sequence[Sequence[Node]]) -> bool:
    """Whether runs of one length are rows all the same: alike below, with elements in them, and of different content."""
    nodes = [node for run in runs for node in run if isinstance(node, Element)]
    if len(runs) < 2 or len(runs[0]) < 2:
        return False
    if not all(any(isinstance(child, Element) for child in node.children) for node in nodes):
        return False
    if len({_structure(node) for node in nodes}) > 1:
        return False
    return all(len({_content(node) for node in at_this_position}) > 1 for at_this_position in zip(*runs, strict=True))


def _structure(node: Node) -> str:
    if isinstance(node, str):
        return "."
    return f"{signature_of(node)}({','.join(_structure(child) for child in node.children)})"


def _content(node: Node) -> str:
    if isinstance(node, str):
        return node
    return repr((node.tag, sorted(node.attributes.items()), [_content(child) for child in node.children]))


def signature_of(node: Node) -> Signature:
    """Return what siblings of one kind share."""
    return _TEXT if isinstance(node, str) else (node.tag, node.attributes.get("class", ""))


def _runs(children: Sequence[Node]) -> list[tuple[Signature, list[Node]]]:
    runs: list[tuple[Signature, list[Node]]] = []
    for child in children:
        signature = signature_of(child)
        if runs and runs[-1][0] == signature:
            runs[-1][1].append(child)
        else:
            runs.append((signature, [child]))
    return runs


def _aligned(examples: Sequence[Sequence[tuple[Signature, list[Node]]]]) -> list[tuple[Signature, list[list[Node]]]]:
    """Return one order of runs that holds the order of every example, each with the runs that stand there."""
    order: list[tuple[Signature, list[list[Node]]]] = []
    for runs in examples:
        matcher = SequenceMatcher(None, [signature for signature, _ in order], [signature for signature, _ in runs], False)
        merged: list[tuple[Signature, list[list[Node]]]] = []
        for kind, begin, end, own_begin, own_end in matcher.get_opcodes():
            if kind == "equal":
                for (signature, before), (_, run) in zip(order[begin:end], runs[own_begin:own_end], strict=True):
                    merged.append((signature, [*before, run]))
                continue
            merged += order[begin:end]
            merged += [(signature, [run]) for signature, run in runs[own_begin:own_end]]
        order = merged
    return order


def fit(template: ElementShape, page: Element) -> PageFit:
    """Return what of a page (a squeezed tree) its route's template explains."""
    result = PageFit()
    _fit(template, page, result)
    return result


def _fit(shape: ElementShape, element: Element, result: PageFit) -> None:
    for name, value in element.attributes.items():
        if name in shape.places:
            result.n_places += 1
        elif name in shape.constants:
            _count(shape.constants[name] == value, result)
        else:
            result.n_surplus += 1
    result.n_missing += sum(name not in element.attributes for name in shape.constants)
    assigned = assign(shape.children, element.children)
    for child, node in zip(assigned, element.children, strict=True):
        if child is None:
            result.n_surplus += max(_size(node), 1)
        elif isinstance(child.shape, ElementShape) and isinstance(node, Element):
            _fit(child.shape, node, result)
        elif isinstance(child.shape, TextShape):
            if child.shape.constant is None:
                result.n_places += 1
            else:
                _count(child.shape.constant == node, result)
    result.n_missing += _missing(shape.children, assigned)


def _count(is_same: bool, result: PageFit) -> None:
    if is_same:
        result.n_constants += 1
    else:
        result.n_changed += 1


def _missing(children: Sequence[ChildShape], assigned: Sequence[ChildShape | None]) -> int:
    present = {id(child) for child in assigned if child is not None}
    return sum(child.number == "one" and id(child) not in present for child in children)


def _size(node: Node) -> int:
    """Return the number of texts and attributes in a node."""
    if isinstance(node, str):
        return 1
    return sum(len(each.attributes) + sum(isinstance(child, str) for child in each.children) for each in node.elements())


def assign(children: Sequence[ChildShape], nodes: Sequence[Node]) -> list[ChildShape | None]:
    """Return for each node the child of a template that it is an example of, None without one.

    Order is kept; of all ways the one with most nodes assigned, then with fewest missing children, then the earliest child."""
    signatures = [signature_of(node) for node in nodes]
    n_nodes, n_children = len(nodes), len(children)
    best = [[(0, 0)] * (n_nodes + 1) for _ in range(n_children + 1)]
    for row in range(n_children - 1, -1, -1):
        child = children[row]
        skipped = -1 if child.number == "one" else 0
        for column in range(n_nodes, -1, -1):
            below = best[row + 1][column]
            value = (below[0], below[1] + skipped)
            if column < n_nodes:
                value = max(value, best[row][column + 1])
                if child.signature in (signatures[column], ANY):
                    value = max(value, _taken(best, row, column, child))
            best[row][column] = value
    assigned: list[ChildShape | None] = [None] * n_nodes
    row = column = 0
    while row < n_children and column < n_nodes:
        child = children[row]
        if child.signature in (signatures[column], ANY) and best[row][column] == _taken(best, row, column, child):
            assigned[column] = child
            row, column = (row if child.number == "rows" else row + 1), column + 1
        elif best[row][column] == best[row][column + 1]:
            column += 1
        else:
            row += 1
    return assigned


def _taken(best: list[list[tuple[int, int]]], row: int, column: int, child: ChildShape) -> tuple[int, int]:
    """Return what assigning the node to the child gives: rows may take the next one too."""
    after = best[row if child.number == "rows" else row + 1][column + 1]
    return after[0] + 1, after[1]


def places_of(shape: ElementShape) -> int:
    """Return the number of places of a template, those of a row once."""
    below = sum(places_of(child.shape) if isinstance(child.shape, ElementShape) else child.shape.constant is None
                for child in shape.children)
    return len(shape.places) + below


def texts_of(shape: ElementShape) -> int:
    """Return the number of texts and attributes of a template, constant or not; optional children and rows count as one."""
    below = sum(texts_of(child.shape) if isinstance(child.shape, ElementShape) and child.number == "one" else 1
                for child in shape.children)
    return len(shape.places) + len(shape.constants) + below


def rows_of(shape: ElementShape) -> int:
    """Return the number of kinds of rows in a template."""
    return sum((child.number == "rows") + (rows_of(child.shape) if isinstance(child.shape, ElementShape) else 0)
               for child in shape.children)
