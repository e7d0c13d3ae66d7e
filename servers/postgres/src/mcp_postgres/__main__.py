"""`mcp-postgres`, and `python -m mcp_postgres`."""

from mcp_batteries.run import run


def main() -> None:
    run("mcp_postgres")


if __name__ == "__main__":
    main()
