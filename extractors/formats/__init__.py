"""Log formats: one module each, and the registry that finds them by content."""

from extractors.formats.format import Block, Emit, Format, Head, LogRecord
from extractors.formats.registry import named, recognise, registered

__all__ = ["Block", "Emit", "Format", "Head", "LogRecord", "named", "recognise", "registered"]
