"""What each server is tried with. A member without a case here fails `test_contract`."""

from collections.abc import Callable
from pathlib import Path

from mcp_batteries.testing.case import Case


def filesystem(scratch: Path) -> Case:
    served, beside = scratch / "served", scratch / "served_not"
    (served / "folder").mkdir(parents=True)
    beside.mkdir()
    (beside / "secret.txt").write_text("the secret", "utf-8")
    (served / "notes.txt").write_text("first\nsecond\nthird\n", "utf-8")
    (served / ".env").write_text("TOKEN=the secret", "utf-8")
    (served / "way_out").symlink_to(beside)
    return Case(
        package="mcp_fs",
        arguments=[str(served)],
        read=("read_text", {"path": "notes.txt"}),
        uri=(served / "notes.txt").as_uri(),
        refused=[
            ("read_text", {"path": "missing.txt"}),
            ("read_text", {"path": "../served_not/secret.txt"}),
            ("read_text", {"path": "way_out/secret.txt"}),
            ("read_text", {"path": str(beside / "secret.txt")}),
            ("read_text", {"path": ".env"}),
            ("read_text", {"path": "notes.txt", "start_line": 0}),
            ("read_text", {"path": "no\0thing"}),
            ("list_directory", {"path": "/etc"}),
            ("write_file", {"path": "../served_not/new.txt", "text": "x"}),
            ("write_file", {"path": "notes.txt", "text": "x"}),
        ],
        foreign=[str(beside), "the secret", "root:"],
    )


def example(scratch: Path) -> Case:
    return Case(
        package="mcp_example",
        arguments=[],
        read=("run_calculation", {"expression": "6 * 7"}),
        uri="clock://now",
        refused=[
            ("run_calculation", {"expression": "__import__('os')"}),
            ("run_calculation", {"expression": "9 ** 9 ** 9"}),
            ("run_calculation", {"expression": "1 / 0"}),
            ("get_time", {"zone": "Middle-earth/Shire"}),
        ],
    )


CASES: dict[str, Callable[[Path], Case]] = {"mcp_fs": filesystem, "mcp_example": example}
