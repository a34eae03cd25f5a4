"""The server's side of an exported environment: it holds room and grader."""
