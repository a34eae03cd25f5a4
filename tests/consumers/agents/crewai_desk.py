"""A desk on CrewAI."""

import sys

import desk
from crewai import Agent, Crew, Task
from crewai.tools import tool

agent = Agent(role="Clerk of an airline's desk", goal="Help the customer", backstory=desk.INSTRUCTIONS, llm="gpt-4.1",
              tools=[tool(each.__name__)(each) for each in desk.TOOLS], max_iter=100)
task = Task(description=sys.argv[1].replace("{", "{{").replace("}", "}}"), expected_output="What was done", agent=agent)
print(Crew(agents=[agent], tasks=[task]).kickoff())
