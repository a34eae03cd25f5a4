"""A desk on Pydantic AI."""

import sys

import desk
from pydantic_ai import Agent
from pydantic_ai.usage import UsageLimits

agent = Agent("openai:gpt-4.1", instructions=desk.INSTRUCTIONS, tools=desk.TOOLS)
print(agent.run_sync(sys.argv[1], usage_limits=UsageLimits(request_limit=100)).output)
