"""`mcp-github`, and `python -m mcp_github`."""

from mcp_batteries.run import run


def main() -> None:
    run("mcp_github")


if __name__ == "__main__":
    main()
