"""A desk on LangGraph."""

import sys

import desk
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent

agent = create_react_agent(ChatOpenAI(model="gpt-4.1"), [tool(each) for each in desk.TOOLS], prompt=desk.INSTRUCTIONS)
state = agent.invoke({"messages": [{"role": "user", "content": sys.argv[1]}]}, {"recursion_limit": 200})
print(state["messages"][-1].content)
