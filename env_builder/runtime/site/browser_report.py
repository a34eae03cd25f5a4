"""A browser's answer in the sections of playwright-mcp: what happened, tabs, the page, an open dialog, the snapshot."""

from __future__ import annotations

from collections.abc import Sequence

from .addresses import BLANK
from .shown_pages import BrowserState, ShownPage, ViewShelf


def report(shelf: ViewShelf, state: BrowserState, notes: Sequence[str], lines: Sequence[str] | None) -> str:
    """Return the answer. `lines`: of the snapshot, None where it is not to be shown."""
    page = state.tabs[state.current].page
    parts = ["### Result", *(f"- {note}" for note in notes)] if notes else []
    if len(state.tabs) > 1:
        parts += ["### Open tabs", *tab_lines(shelf, state)]
    if page is None:
        return "\n".join([*parts, "### Page", f"- Page URL: {BLANK}"])
    parts += ["### Page", f"- Page URL: {page.address}"]
    title = shelf.flat(page.tree).title
    parts += [f"- Page Title: {title}"] if title else []
    parts += [f"- HTTP status: {page.status}"] if not 200 <= page.status < 300 else []
    if state.dialog is not None:
        parts += ["### Modal state", f'- ["confirm" dialog with message "{state.dialog.message}"]: can be handled by '
                                     "browser_handle_dialog"]
    elif state.chooser is not None:
        parts += ["### Modal state", "- [File chooser]: can be handled by browser_file_upload"]
    if lines is not None:
        parts += ["### Snapshot", "```yaml", *lines, "```"]
    return "\n".join(parts)


def tab_lines(shelf: ViewShelf, state: BrowserState) -> list[str]:
    """Return a line for each tab."""
    lines = []
    for number, tab in enumerate(state.tabs):
        current = " (current)" if number == state.current else ""
        title = shelf.flat(tab.page.tree).title if tab.page is not None else ""
        lines.append(f"- {number}:{current} [{title}]({tab.page.address if tab.page is not None else BLANK})")
    return lines


def changed_lines(shelf: ViewShelf, before: ShownPage | None, page: ShownPage | None, lines: Sequence[str]) -> Sequence[str]:
    """Return the lines that an earlier answer did not show of the same page, marked; all lines of another page."""
    if before is None or page is None or before.refs.start != page.refs.start:
        return lines
    earlier = set(shelf.view(before.tree, before.opened).lines(before.edits, before.focus, before.refs))
    return [f"- <changed> {line.strip()[2:]}" for line in lines if line not in earlier]
