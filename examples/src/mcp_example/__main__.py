"""`mcp-example`, and `python -m mcp_example`."""

from mcp_batteries.run import run


def main() -> None:
    run("mcp_example")


if __name__ == "__main__":
    main()
