"""What answers the tools of a repository's workspace, the kind `shell`, and what verifies changes in it.

An environment with such an app holds a copy in `apps/<name>/runtime`; others do not have it. Standard library only.
"""

from .workspace import load

__all__ = ["load"]
