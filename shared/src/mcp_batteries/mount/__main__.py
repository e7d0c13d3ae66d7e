"""`mcp-batteries`, and `python -m mcp_batteries.mount`."""

from mcp_batteries.run import run


def main() -> None:
    run("mcp_batteries.mount")


if __name__ == "__main__":
    main()
