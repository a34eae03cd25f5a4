"""The tools of a browser, under the names and with the arguments of playwright-mcp.

Not offered: running scripts, reading the network, files on this machine's disk. `ref` is read as `target`, as earlier versions
of playwright-mcp called it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..schemas import Schema, fields

_ELEMENT: Schema = {"type": "string", "description": "Human-readable description of the element"}
_TARGET: Schema = {"type": "string", "description": (
    'Ref of the element in the page snapshot (e12), or role=ROLE[name="NAME"] where one element alone has this role and name')}
_TEXT: Schema = {"type": "string"}


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


def _flag(description: str) -> Schema:
    return {"type": "boolean", "description": description}


_FIELD = fields("target", "name", "type", "value", element=_ELEMENT, target=_TARGET, name=_text("Human-readable field name"),
                type={"type": "string", "enum": ["textbox", "checkbox", "radio", "combobox", "slider"],
                      "description": "Type of the field"},
                value=_text("Value to fill in; of a checkbox or radio `true` or `false`, of a combobox the text of the option"))
SCREENSHOT = "browser_take_screenshot"
TOOLS: dict[str, tuple[str, str, Schema, bool]] = {
    "browser_navigate": ("Navigate to a URL", "Navigate to a URL", fields("url", url=_text("The URL to navigate to")), False),
    "browser_navigate_back": ("Go back", "Go back to the previous page in the history", fields(), False),
    "browser_snapshot": (
        "Page snapshot", "Capture accessibility snapshot of the current page", fields(
            target=_TARGET, depth={"type": "number", "minimum": 1, "description": "Limit the depth of the tree"}), True),
    "browser_click": (
        "Click", "Perform click on a web page", fields(
            "target", element=_ELEMENT, target=_TARGET, doubleClick=_flag("Whether to click twice"),
            button={"type": "string", "enum": ["left", "right", "middle"], "description": "Button to click, defaults to left"},
            modifiers={"type": "array", "description": "Modifier keys to press", "items": {
                "type": "string", "enum": ["Alt", "Control", "ControlOrMeta", "Meta", "Shift"]}}), False),
    "browser_type": (
        "Type text", "Type text into editable element; it replaces what stands there", fields(
            "target", "text", element=_ELEMENT, target=_TARGET, text=_text("Text to type into the element"),
            submit=_flag("Whether to press Enter afterwards"),
            slowly=_flag("Whether to type one character at a time, after what stands there")), False),
    "browser_fill_form": (
        "Fill form", "Fill multiple form fields", fields(
            "fields", fields={"type": "array", "items": _FIELD, "description": "Fields to fill in"}), False),
    "browser_select_option": (
        "Select option", "Select an option in a dropdown", fields(
            "target", "values", element=_ELEMENT, target=_TARGET,
            values={"type": "array", "items": _TEXT, "description": "Values or texts of the options to select"}), False),
    "browser_press_key": (
        "Press a key", "Press a key on the keyboard", fields(
            "key", key=_text("Name of the key to press or a character to generate, such as `ArrowLeft` or `a`")), False),
    "browser_wait_for": (
        "Wait for", "Wait for text to appear or disappear or a specified time to pass", fields(
            time={"type": "number", "minimum": 0, "maximum": 30, "description": "The time to wait in seconds, at most 30"},
            text=_text("The text to wait for"), textGone=_text("The text to wait for to disappear")), True),
    "browser_file_upload": (
        "Upload files", "Upload one or multiple files, after a click on a field for files", fields(
            paths={"type": "array", "items": _TEXT, "description": "Paths of the files; if omitted, the chooser is cancelled"}),
        False),
    "browser_handle_dialog": (
        "Handle a dialog", "Handle a dialog", fields(
            "accept", accept=_flag("Whether to accept the dialog"), promptText=_text("The text of the prompt")), False),
    "browser_tabs": (
        "Manage tabs", "List, create, close, or select a browser tab", fields(
            "action", action={"type": "string", "enum": ["list", "new", "close", "select"], "description": "What to do"},
            index={"type": "integer", "minimum": 0, "description": (
                "Tab index, used for close/select. If omitted for close, the current tab is closed")},
            url=_text("URL to navigate to in the new tab, used for new")), False),
    "browser_find": (
        "Find in page snapshot", "Search the accessibility snapshot of the current page for text or an expression", fields(
            text=_text("Text to search for, in any case. Provide either text or regex, not both"),
            regex=_text("Regular expression to search for; /pattern/i for any case"),
            maxResults={"type": "integer", "minimum": 1, "description": "Maximum number of matches to return"}), True),
    SCREENSHOT: (
        "Take a screenshot", "Take a screenshot of the current page", fields(
            element=_ELEMENT, target=_TARGET, type={"type": "string", "enum": ["png", "jpeg"], "description": "Image format"},
            fullPage=_flag("Whether to take the whole page and not the visible part")), True)}
"""Tool -> title, description, schema of the arguments, whether it only reads."""
WINDOWLESS = tuple(name for name in TOOLS if name != SCREENSHOT)
"""Tools that need no window."""


def descriptors(screenshots: bool = False) -> list[dict[str, Any]]:
    """Return the MCP descriptors of the tools. `screenshots`: of a host with a window."""
    return [{"name": name, "description": description, "inputSchema": schema,
             "annotations": {"title": title, "readOnlyHint": reads}}
            for name, (title, description, schema, reads) in sorted(TOOLS.items()) if screenshots or name != SCREENSHOT]


def with_targets(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with `ref` under its present name."""
    def renamed(each: Any) -> Any:
        if isinstance(each, dict) and "ref" in each and "target" not in each:
            return {("target" if name == "ref" else name): value for name, value in each.items()}
        return each
    fresh: dict[str, Any] = renamed(dict(arguments))
    if isinstance(fresh.get("fields"), list):
        fresh["fields"] = [renamed(each) for each in fresh["fields"]]
    return fresh
