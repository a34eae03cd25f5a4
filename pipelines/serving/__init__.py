"""Environments for agents elsewhere: MCP over streamable HTTP, OpenEnv; servers outside the room, which needs no network."""
