"""Are line templates as good as Drain's?

`measure()` makes logs in the shapes of public ones whose templates are hard: a proxy's (hosts first, sizes with an optional
unit in brackets), a cloud's (hex ids, paths, lists of several lengths, key=value with spaces), a desktop's (long free tails,
hex codes, package names), a scheduler's (users and queues without digits). Grouping accuracy (Zhu et al., ICSE-SEIP 2019) is
the share of lines whose group holds exactly the lines of their statement. `Drain` is the algorithm of He, Zhu, Zheng and
Lyu (ICWS 2017) with the usual settings (depth 4, similarity .5, 100 children; numbers, addresses and hex ids masked first).
`templates_margin`: ours minus Drain's on the worst set. Does not measure the templates' texts.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from extractors.templates import named

_LINES = 1500
_SIZES = ("", " ({n}.{d} KB)", " ({d}.{n} MB)")
STATEMENTS = {
    "proxy": (
        "{host}:{n} open through proxy {host}:{n} HTTPS", "{host}:{n} open through proxy {host}:{n} SOCKS5",
        "{host}:{n} close, {n} bytes{size} sent, {n} bytes{size} received, lifetime {time}",
        "{host}:{n} close, {n} bytes{size} sent, {n} bytes{size} received, lifetime <1 sec",
        "{host}:{n} error : Could not connect through proxy {host}:{n} - Proxy server cannot establish a connection",
        "open through proxy failed for {host}"),
    "cloud": (
        "[instance: {uuid}] VM Started (Lifecycle Event)", "[instance: {uuid}] VM Paused (Lifecycle Event)",
        "[instance: {uuid}] Creating image", "[instance: {uuid}] Took {n}.{d} seconds to spawn the instance on the hypervisor.",
        "Active base files: {paths}", "Removable base files: {paths}", "image {uuid} at ({path}): checking",
        "Running instance usage audit for host {name} from {date} to {date}. {n} instances.",
        "{ip} \"GET /v2/{hex}/servers/detail HTTP/1.1\" status: {n} len: {n} time: {d}.{n}",
        "Auditing locally available compute resources for node {name}",
        "Final resource view: name={name} phys_ram={n} MB used_ram={n} MB pci_stats={list}"),
    "desktop": (
        "CBS    Loaded Servicing Stack v{n}.{n} with Core: {path}.dll", "SQM: Initializing online with Windows opt-in: {flag}",
        "CBS    Session: {n}_{n} initialized by client {client}.",
        "CBS    Read out cached package applicability for package: {package}, ApplicableState: {n}, CurrentState:{n}",
        "CBS    Failed to internally open package. [HRESULT = 0x{hex} - {code}]",
        "CSI    {hex}@{date} {client} begin transaction {free}", "CBS    Warning: Unrecognized packageExtended attribute.",
        "CBS    SQM: Failed to start upload with file pattern: {path}\\*_std.sqm, flags: 0x{n} [HRESULT = 0x{hex} - {code}]"),
    "scheduler": (
        "user {name} submitted job {n} to queue {queue}", "user {name} cancelled job {n}", "{queue} drained by {name}",
        "{queue} resumed by {name}", "job {n} exited with reason {free}", "nodes {names} allocated to job {n}",
        "quota of {name} on {path} exceeded by {n} KB", "reservation {name} starts at {time}")}
_NAMES = ("anna", "berta", "carlos", "dmitri", "eve", "farid", "gita", "hana", "ivo", "jun", "kofi", "lena")
_WORDS = ("the", "request", "was", "denied", "because", "of", "disk", "pressure", "after", "retry", "by", "policy", "unknown")


def measure() -> dict[str, Any]:
    """Return templates_margin, the means, and both accuracies of each set."""
    sets = {}
    for place, (name, statements) in enumerate(STATEMENTS.items()):
        lines = instances(statements, _LINES, place)
        true, texts = [number for number, _ in lines], [text for _, text in lines]
        sets[name] = {"ours": accuracy(true, [each.template for each in named(texts)]), "drain": accuracy(true, drain(texts))}
    means = {f"templates_mean_{who}": round(sum(each[who] for each in sets.values()) / len(sets), 4)
             for who in ("ours", "drain")}
    margin = round(min(each["ours"] - each["drain"] for each in sets.values()), 4)
    return {"templates_margin": margin, **means, "templates": sets}


def instances(statements: Sequence[str], n: int, seed: int) -> list[tuple[int, str]]:
    """Write lines with the number of their statement; earlier statements are more frequent."""
    chance = random.Random(seed)
    chosen = chance.choices(range(len(statements)), [1 / (1 + place) for place in range(len(statements))], k=n)
    return [(number, re.sub(r"\{(\w+)\}", lambda match: _value(match[1], chance), statements[number])) for number in chosen]


def _value(slot: str, chance: random.Random) -> str:
    def hexes(n: int) -> str:
        return "".join(chance.choices("0123456789abcdef", k=n))

    name, number, digit = chance.choice(_NAMES), str(chance.randrange(10_000)), str(chance.randrange(10))
    path = "/" + "/".join(chance.sample(("var", "lib", "nova", "base", "data", "opt", "cache"), 3))
    values = {
        "n": number, "d": digit, "name": name, "hex": hexes(8), "uuid": f"{hexes(8)}-{hexes(4)}-{hexes(4)}-{hexes(12)}",
        "host": chance.choice(("mail", "www", "cdn", "api")) + f".{name}." + chance.choice(("example", "test")), "path": path,
        "paths": " ".join(path + "/" + hexes(6) for _ in range(chance.randrange(1, 5))), "ip": f"10.{digit}.0.{digit}",
        "time": f"0{digit}:{number[:1]}{digit}", "date": f"2026-01-1{digit} 0{digit}:00:00",
        "flag": chance.choice(("True", "False")),
        "list": "[" + ", ".join(chance.sample(_NAMES, chance.randrange(0, 4))) + "]", "queue": f"queue-of-{name}",
        "client": chance.choice(("WindowsUpdateAgent", "DISM Package Manager", "SPP")), "free": " ".join(
            chance.sample(_WORDS, chance.randrange(1, 9))), "names": ",".join(chance.sample(_NAMES, chance.randrange(1, 5))),
        "package": f"Package_for_KB{number}~{hexes(16)}~amd64~~6.1", "code": chance.choice(("E_FAIL", "CBS_E_INVALID_PACKAGE")),
        "size": chance.choice(_SIZES).replace("{n}", digit).replace("{d}", number)}
    return values[slot]


def accuracy(true: Sequence[int], groups: Sequence[Any]) -> float:
    """Share of lines whose group holds exactly the lines of their statement."""
    pairs, of_group, of_true = Counter(zip(groups, true, strict=True)), Counter(groups), Counter(true)
    return round(sum(n for (group, kind), n in pairs.items() if n == of_group[group] == of_true[kind]) / len(true), 4)


_MASKED = re.compile(r"(?<![\w])(?:0x)?(?:\d+(?:\.\d+)*|(?=[0-9a-f-]*\d)[0-9a-f]{6,}(?:-[0-9a-f]+)*)(?![\w])")
_DEPTH, _SIMILAR, _CHILDREN = 2, 0.5, 100


def drain(lines: Sequence[str]) -> list[int]:
    """Group lines online, as in the paper: number of words, first words (at most so many different), the most similar group."""
    leaves: dict[tuple[str, ...], list[tuple[int, list[str]]]] = {}
    children: dict[tuple[str, ...], set[str]] = {}
    groups, n_groups = [], 0
    for line in lines:
        words = _MASKED.sub("<*>", line).split() or [""]
        path = (str(len(words)),)
        for word in words[:_DEPTH]:
            below = children.setdefault(path, set())
            is_value = any(map(str.isdigit, word)) or (word not in below and len(below) >= _CHILDREN)
            token = "<*>" if is_value else word
            below.add(token)
            path = (*path, token)
        leaf = leaves.setdefault(path, [])
        scored = [(sum(map(str.__eq__, template, words)) / len(words), -template.count("<*>"), group, template)
                  for group, template in leaf]
        best = max(scored, default=None, key=lambda each: each[:2])
        if best is None or best[0] < _SIMILAR:
            leaf.append((n_groups, words))
            groups.append(n_groups)
            n_groups += 1
        else:
            best[3][:] = [own if own == word else "<*>" for own, word in zip(best[3], words, strict=True)]
            groups.append(best[2])
    return groups
