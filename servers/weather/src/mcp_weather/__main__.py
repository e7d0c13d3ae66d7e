"""`mcp-weather`, and `python -m mcp_weather`."""

from mcp_batteries.run import run


def main() -> None:
    run("mcp_weather")


if __name__ == "__main__":
    main()
