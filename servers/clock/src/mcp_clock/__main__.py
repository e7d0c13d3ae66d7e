"""`mcp-clock`, and `python -m mcp_clock`."""

from mcp_batteries.run import run


def main() -> None:
    run("mcp_clock")


if __name__ == "__main__":
    main()
