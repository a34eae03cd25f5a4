"""The server's side of an environment: it holds the environment and its grader."""
