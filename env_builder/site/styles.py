"""Compile style sheets into what the runtime needs to know which elements a page shows (`runtime/site/styling.py`).

In: CSS texts by the address of their sheet, and the pages' own `<style>` texts. Out: JSON of the rules that decide what is
shown and how its texts join: `display`, `visibility`, `float`, `position`, `pointer-events`, and the `content` of ::before and
::after. All others are dropped. Follows the syntax of CSS (comments, strings, escapes, nested @media). Sees: type, class, id,
attribute and structural selectors, :not and :is, nested rules, @media for screens by the viewport's size, @layer in one sheet.
Does not see: rules with states that only a person's hand makes (:hover, :focus), :has, @supports (taken as true), @container,
@import, custom properties (a declaration with var() is dropped).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from env_builder.runtime.site.media import Media, both, media_query
from env_builder.runtime.site.styling import PROPERTIES, PSEUDOS, sheet_key

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_STRING = r'"(?:[^"\\\n]|\\.|\\\n)*"' + r"|'(?:[^'\\\n]|\\.|\\\n)*'"
_TOKEN = re.compile(rf"{_STRING}|[{{}};()\[\]]|(?:[^{{}};()\[\]\"'\\]|\\.)+|.", re.DOTALL)
_IDENTIFIER = r"(?:[-\w]|[^\x00-\x7f]|\\[0-9a-fA-F]{1,6}\s?|\\.)+"
_PART = re.compile(rf"(?P<tag>\*|{_IDENTIFIER})|#(?P<id>{_IDENTIFIER})|\.(?P<class>{_IDENTIFIER})|\[(?P<attribute>[^\]]*)\]"
                   rf"|::?(?P<pseudo>{_IDENTIFIER})(?P<open>\()?")
_ATTRIBUTE = re.compile(rf"\s*(?:\w*\|)?({_IDENTIFIER})\s*(?:([~|^$*]?=)\s*({_STRING}|{_IDENTIFIER})\s*([is])?\s*)?", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(\n)|(.))", re.DOTALL)
_NTH = re.compile(r"([+-]?\d*)n\s*(?:([+-])\s*(\d+))?|([+-]?\d+)")
_SIMPLE_NTH = {"first-child": ("nth-child", 0, 1), "last-child": ("nth-last-child", 0, 1),
               "first-of-type": ("nth-of-type", 0, 1), "last-of-type": ("nth-last-of-type", 0, 1)}
_NESTED = frozenset({"supports", "document"})
"""At-rules whose rules count."""
_PSEUDO_ELEMENTS = frozenset({"before", "after"})
_MOST_DEPTH = 20
UNLAYERED = 1_000_000
"""The layer of rules that are in none."""
CompiledSelector: TypeAlias = "tuple[list[list[Any]], str, list[int]]"
"""Compounds from the element outwards, pseudo-element, specificity."""


_UNTOUCHED = frozenset({
    "active", "any-link", "autofill", "backdrop", "cue", "current", "default", "defined", "dir", "file-selector-button",
    "first-letter", "first-line", "focus", "focus-visible", "focus-within", "fullscreen", "future", "has", "host",
    "hover", "in-range", "indeterminate", "invalid", "lang", "marker", "modal", "open", "optional", "out-of-range",
    "paused", "placeholder", "placeholder-shown", "playing", "popover-open", "read-only", "read-write", "selection",
    "slotted", "target", "user-invalid", "user-valid", "valid", "visited"})
"""Names that a browser knows and this compiler leaves out."""


class UnsupportedSelector(Exception):
    """A selector that matches nothing on an untouched page, or that this compiler leaves out."""


class InvalidSelector(Exception):
    """A selector that no browser knows: the whole rule is void."""


def compile_styles(sheets: Mapping[str, str], inline: tuple[str, ...] | list[str] = ()) -> dict[str, Any]:
    """Return the rules of style sheets by address, and of `<style>` texts by their content, as a JSON value."""
    compiled = {urlsplit(address).path or address: compile_sheet(text) for address, text in sorted(sheets.items())}
    compiled |= {sheet_key(text): compile_sheet(text) for text in sorted(inline)}
    return {"sheets": {key: rules for key, rules in compiled.items() if rules}}


def compile_sheet(text: str) -> list[dict[str, Any]]:
    """Return the rules of one sheet that concern what is shown, in order."""
    return list(_SheetCompiler().rules(_TOKEN.findall(_COMMENT.sub(" ", text)), _RulePlace()))


class _RulePlace(NamedTuple):
    """Where a rule stands."""

    media: Media = None
    layer: int = UNLAYERED
    parent: str = ""
    """The selectors of the rule that it is nested in."""
    depth: int = 0


class _SheetCompiler:
    """One sheet while it is compiled: the order of its cascade layers."""

    def __init__(self) -> None:
        self._layers: dict[str, int] = {}

    def rules(self, tokens: list[str], context: _RulePlace) -> Iterator[dict[str, Any]]:
        """Yield the rules of a sheet, or of the block of an at-rule."""
        position = 0
        while position < len(tokens):
            start, is_at_rule = position, False
            while position < len(tokens) and tokens[position] != "{" and not (is_at_rule and tokens[position] == ";"):
                begins = not "".join(tokens[start:position]).strip()
                is_at_rule = is_at_rule or (begins and tokens[position].lstrip().startswith("@"))
                position = _after(tokens, position)
            prelude = "".join(tokens[start:position]).strip()
            if position >= len(tokens) or tokens[position] == ";":
                self._name_layers(prelude)
                position += 1
                continue
            end = _after(tokens, position)
            yield from self._block(prelude, _inside(tokens, position, end), context)
            position = end

    def _block(self, prelude: str, body: list[str], context: _RulePlace) -> Iterator[dict[str, Any]]:
        """Yield the rules of a block with its prelude: a rule with selectors, or an at-rule."""
        if context.depth > _MOST_DEPTH:
            return
        if not prelude.startswith("@"):
            if context.parent:
                prelude = ", ".join(_nested(each, context.parent) for each in split_selectors(prelude))
            yield from self._style_rules(prelude, body, context._replace(depth=context.depth + 1))
            return
        match = re.match(r"@([-\w]+)\s*(.*)", prelude, re.DOTALL)
        name, condition = (match[1].lower(), match[2]) if match is not None else ("", "")
        inner = context._replace(depth=context.depth + 1)
        if name == "media":
            inner = inner._replace(media=both(context.media, media_query(condition)))
        elif name == "layer":
            n_layers = len(self._layers)
            inner = inner._replace(layer=self._layers.setdefault(condition.strip() or f" {n_layers}", n_layers))
        elif name not in _NESTED:
            return
        if inner.media == []:
            return
        yield from self._style_rules(context.parent, body, inner) if context.parent else self.rules(body, inner)

    def _name_layers(self, prelude: str) -> None:
        """Take in the order of layers that a statement gives."""
        if prelude.startswith("@layer"):
            for name in prelude.removeprefix("@layer").split(","):
                self._layers.setdefault(name.strip(), len(self._layers))

    def _style_rules(self, prelude: str, body: list[str], context: _RulePlace) -> Iterator[dict[str, Any]]:
        """Yield a rule for each of its selectors, then the rules that are nested in it."""
        declarations, nested = _parted(body)
        own, content = [], []
        for name, value, heavy in _declarations(declarations):
            if name == "content":
                content.append([name, _content(value), heavy])
            else:
                own.append([name, value, heavy])
        for compounds, pseudo, specificity in _selectors(prelude) if own or content else ():
            chosen = own + content if pseudo else own
            if chosen:
                yield {"media": context.media, "layer": context.layer, "selector": compounds, "pseudo": pseudo, "set": chosen,
                       "specificity": specificity}
        for inner, block in nested:
            yield from self._block(inner, block, context._replace(parent=prelude))


def _selectors(prelude: str) -> list[CompiledSelector]:
    """Return the selectors of a rule; none if one of them is void."""
    selectors = []
    for selector in split_selectors(prelude):
        try:
            selectors.append(compile_selector(selector))
        except UnsupportedSelector:
            continue
        except InvalidSelector:
            return []
    return selectors


def _nested(selector: str, parent: str) -> str:
    """Return a selector of a rule within another, as it would stand outside."""
    within = f":is({parent})"
    return selector.replace("&", within) if "&" in selector else f"{within} {selector}"


def _parted(body: list[str]) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Part the body of a rule into its declarations and the blocks within, each with its prelude."""
    declarations: list[str] = []
    nested: list[tuple[str, list[str]]] = []
    position = start = 0
    while position < len(body):
        if body[position] == "{":
            end = _after(body, position)
            nested.append(("".join(body[start:position]).strip(), _inside(body, position, end)))
            position = start = end
        elif body[position] == ";":
            position += 1
            declarations += body[start:position]
            start = position
        else:
            position = _after(body, position)
    return declarations + body[start:], nested


def _inside(tokens: list[str], position: int, end: int) -> list[str]:
    """Return the tokens between the bracket at a place and the one before the end."""
    return tokens[position + 1:end - 1] if tokens[end - 1] == "}" else tokens[position + 1:end]


def _after(tokens: list[str], position: int) -> int:
    """Return the place after a token, or after everything in its brackets."""
    closing = {"{": "}", "(": ")", "[": "]"}
    expected = [closing[tokens[position]]] if tokens[position] in closing else []
    position += 1
    while expected and position < len(tokens):
        token = tokens[position]
        if token in closing:
            expected.append(closing[token])
        elif token == expected[-1]:
            expected.pop()
        elif token == "}" and "}" in expected:
            while expected.pop() != "}":
                pass
        position += 1
    return position


def _declarations(tokens: list[str]) -> Iterator[tuple[str, str, int]]:
    """Yield name, value and importance of the declarations that concern what is shown."""
    position, start = 0, 0
    while position <= len(tokens):
        if position == len(tokens) or tokens[position] == ";":
            name, _, value = "".join(tokens[start:position]).partition(":")
            name, value = name.strip().lower(), value.strip()
            heavy = re.search(r"!\s*important$", value, re.IGNORECASE)
            value = value[:heavy.start()].strip() if heavy else value
            if name in PROPERTIES and value and "var(" not in value:
                yield name, value if name == "content" else value.lower(), int(heavy is not None)
            position += 1
            start = position
        else:
            position = _after(tokens, position)


def _content(value: str) -> list[list[str]] | None:
    """Return the texts and attributes that make up the content of a pseudo-element; None: none that can be read."""
    alternative = re.split(rf"/(?=(?:[^\"']|{_STRING})*$)", value)
    parts = []
    rest = alternative[-1].strip()
    while rest:
        match = re.match(rf"({_STRING})|attr\(\s*({_IDENTIFIER})\s*\)", rest)
        if match is None:
            return None
        parts.append(["text", unescape(match[1][1:-1])] if match[1] else ["attribute", match[2].lower()])
        rest = rest[match.end():].strip()
    return parts or None


def unescape(text: str) -> str:
    """Return a name or string of CSS without its escapes."""
    def character(match: re.Match[str]) -> str:
        if match[1]:
            code = int(match[1], 16)
            return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
        return "" if match[2] else match[3]
    return _ESCAPE.sub(character, text)


def split_selectors(text: str) -> list[str]:
    """Split a list of selectors at its commas, those in brackets and strings aside."""
    parts, depth, start = [], 0, 0
    for match in re.finditer(rf"{_STRING}|[,()\[\]]|\\.", text, re.DOTALL):
        token = match[0]
        if token in "([":
            depth += 1
        elif token in ")]":
            depth -= 1
        elif token == "," and depth == 0:
            parts.append(text[start:match.start()])
            start = match.end()
    return [part.strip() for part in [*parts, text[start:]]]


def compile_selector(text: str, depth: int = 0) -> CompiledSelector:
    """Return the compounds of a selector from the element outwards, its pseudo-element, its specificity.

    Errors: `UnsupportedSelector`, `InvalidSelector`.
    """
    if depth > _MOST_DEPTH or not text.strip():
        raise InvalidSelector(text)
    compounds: list[list[Any]] = []
    combinators: list[str] = []
    pseudo, specificity, position = "", [0, 0, 0], 0
    text = text.strip()
    while position < len(text):
        what: dict[str, Any] = {}
        start = position
        while position < len(text) and (match := _PART.match(text, position)) is not None:
            if pseudo or (match["tag"] and position != start):
                raise InvalidSelector(text)
            position = match.end()
            if match["open"]:
                position = _closing(text, position)
            pseudo = _enter_part(what, match, text[match.end():position - 1], specificity, depth)
        if position == start:
            raise InvalidSelector(text)
        compounds.append(["", what])
        between = re.compile(r"\s*([>+~])\s*|\s+").match(text, position)
        if between is None:
            if position < len(text):
                raise InvalidSelector(text)
            break
        combinators.append(between[1] or " ")
        position = between.end()
    if len(combinators) != len(compounds) - 1:
        raise InvalidSelector(text)
    outwards = compounds[::-1]
    for compound, combinator in zip(outwards[1:], reversed(combinators), strict=True):
        compound[0] = combinator
    return outwards, pseudo, specificity


def _closing(text: str, position: int) -> int:
    """Return the place after the bracket that closes the one before `position`."""
    depth = 1
    for match in re.compile(rf"{_STRING}|[()]|\\.", re.DOTALL).finditer(text, position):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth == 0:
            return match.end()
    raise InvalidSelector(text)


def _enter_part(what: dict[str, Any], match: re.Match[str], argument: str, specificity: list[int], depth: int) -> str:
    """Enter one part of a compound selector; return the name of a pseudo-element, else nothing."""
    if match["tag"]:
        if match["tag"] != "*":
            what["tag"] = unescape(match["tag"]).lower()
            specificity[2] += 1
    elif match["id"]:
        what["id"] = unescape(match["id"])
        specificity[0] += 1
    elif match["class"]:
        what.setdefault("classes", []).append(unescape(match["class"]))
        specificity[1] += 1
    elif match["attribute"] is not None:
        parts = _ATTRIBUTE.fullmatch(match["attribute"])
        if parts is None:
            raise InvalidSelector(match["attribute"])
        value = parts[3] or ""
        value = unescape(value[1:-1] if value[:1] in ("'", '"') else value)
        what.setdefault("attributes", []).append(
            [unescape(parts[1]).lower(), (parts[2] or "") + ("i" if parts[4] == "i" else ""), value])
        specificity[1] += 1
    else:
        return _enter_pseudo(what, match["pseudo"].lower(), argument, specificity, depth)
    return ""


def _enter_pseudo(what: dict[str, Any], name: str, argument: str, specificity: list[int], depth: int) -> str:
    if name in _PSEUDO_ELEMENTS and not argument:
        specificity[2] += 1
        return name
    pseudos = what.setdefault("pseudos", [])
    if name in ("not", "is", "matches", "where", "-webkit-any", "-moz-any"):
        inner = [compile_selector(each, depth + 1) for each in split_selectors(argument)]
        if any(pseudo for _, pseudo, _ in inner):
            raise UnsupportedSelector(name)
        pseudos.append(["not" if name == "not" else "is", [compounds for compounds, _, _ in inner]])
        if name != "where" and inner:
            heaviest = max(each for _, _, each in inner)
            specificity[:] = [one + other for one, other in zip(specificity, heaviest, strict=True)]
        return ""
    specificity[1] += 1
    if name in _SIMPLE_NTH:
        kind, step, start = _SIMPLE_NTH[name]
        pseudos.append([kind, [step, start]])
    elif name in ("only-child", "only-of-type"):
        kind = name.removeprefix("only-")
        pseudos += [[f"nth-{kind}", [0, 1]], [f"nth-last-{kind}", [0, 1]]]
    elif name.startswith("nth-") and name in PSEUDOS:
        pseudos.append([name, _nth(argument)])
    elif name in PSEUDOS and not argument:
        pseudos.append([name, None])
    elif name in _UNTOUCHED or name.startswith("-webkit-"):
        raise UnsupportedSelector(name)
    else:
        raise InvalidSelector(name)
    return ""


def _nth(text: str) -> list[int]:
    text = {"odd": "2n+1", "even": "2n"}.get(text.strip().lower(), text.strip().lower())
    match = _NTH.fullmatch(text)
    if match is None:
        raise InvalidSelector(text)
    if match[4]:
        return [0, int(match[4])]
    step = int(match[1] + "1") if match[1] in ("", "+", "-") else int(match[1])
    return [step, int(match[2] + match[3]) if match[3] else 0]
