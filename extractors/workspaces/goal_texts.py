"""What a session's user asked for, without what gives the solution away.

Taken out: ids of commits of the repository, links to commits and pull requests, pull requests that are named as such, numbers
of those that solved it, names of tests that the user could not have seen. The words are otherwise the user's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

_COMMIT = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b")
_PULL = re.compile(r"\s*\((?:see |via |in )?(?:PR|pull request|merge request|MR)\s*[#!]?\d+\)"
                   r"|\b(?:PR|pull request|merge request|MR)\s*[#!]?\d+\b", re.IGNORECASE)
_LINK = re.compile(r"\S*/(?:pull|pulls|merge_requests|pull-requests|commit|commits)/[0-9a-f]+\S*")


def goal_text(text: str, is_commit: Callable[[str], bool], pull_numbers: Iterable[int], tests: Iterable[str]) -> str:
    """Return a user's words. `tests`: names of functions that must not be named."""
    text = _LINK.sub("[link]", text)
    text = _COMMIT.sub(lambda match: "[commit]" if is_commit(match[0]) else match[0], text)
    text = _PULL.sub("", text)
    for number in sorted(set(pull_numbers)):
        text = re.sub(rf"\s*\(\s*#{number}\s*\)|(?<!\w)[#!]{number}\b", "", text)
    for test in sorted(set(tests), key=lambda each: (-len(each), each)):
        text = re.sub(rf"(?<![\w.]){re.escape(test)}(?!\w)", "[a test]", text)
    return text.strip()
