"""A desk on the OpenAI Agents SDK."""

import sys

import desk
from agents import Agent, Runner, function_tool, set_tracing_disabled

set_tracing_disabled(True)
agent = Agent(name="Desk", instructions=desk.INSTRUCTIONS, tools=[function_tool(tool) for tool in desk.TOOLS], model="gpt-4.1")
print(Runner.run_sync(agent, sys.argv[1], max_turns=100).final_output)
