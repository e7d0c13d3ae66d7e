"""`mcp-fs`, and `python -m mcp_fs`."""

from mcp_batteries.run import run


def main() -> None:
    run("mcp_fs")


if __name__ == "__main__":
    main()
