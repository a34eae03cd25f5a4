"""Agents of somebody's own, unchanged: a command or a service plays an episode (docs/howto/agent.md).

    talks      one episode: the model's turns, the tools' calls and the user's words, in the order that the plain loop has
    chat_api, responses_api, messages_api   three protocols of models, each to and from chat completions
    tool_api   the episode's tools over MCP
    server     all of it over HTTP on loopback, with a secret path for each episode
    launching  start the agent, wait for it, and end it
    agent_player   a player whose turns an agent takes
    preload    files that the agent's own interpreter loads, to replace its tool functions
"""
