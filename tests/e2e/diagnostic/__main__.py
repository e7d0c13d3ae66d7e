"""`python tests/e2e/diagnostic`: the diagnostic server."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from mcp_batteries.run import run

    run("diagnostic")
