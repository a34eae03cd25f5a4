"""`python -m pipelines`: the command line, as the console script `traceroom` starts it."""

from pipelines.cli import main

if __name__ == "__main__":
    main()
