"""`mcp-git`, and `python -m mcp_git`."""

from mcp_batteries.run import run


def main() -> None:
    run("mcp_git")


if __name__ == "__main__":
    main()
