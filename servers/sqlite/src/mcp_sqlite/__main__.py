"""`mcp-sqlite`, and `python -m mcp_sqlite`."""

from mcp_batteries.run import run


def main() -> None:
    run("mcp_sqlite")


if __name__ == "__main__":
    main()
