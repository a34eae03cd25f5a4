"""`python -m pipelines`: the command line, as the console script `traceroom` starts it."""

import sys

try:
    from pipelines.cli import main
except KeyboardInterrupt:  # Ctrl-C before there is anything to stop
    sys.exit(130)

if __name__ == "__main__":
    main()
