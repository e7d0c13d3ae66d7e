"""What `--check` finds without starting a server."""

import pytest

from mcp_batteries.cli import check
from mcp_batteries.program import program_of
from mcp_batteries.settings import load
from mcp_github.settings import Settings as Github


@pytest.mark.parametrize(
    ("value", "status"),
    [("github_pat_...", 1), (" github_pat_... ", 1), ("***", 1), ("github_pat_0123", 0), ("", 0)],
)
def test_check_calls_an_unfilled_placeholder_an_error(
    value: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def succeed(*_: object) -> None:
        pass

    monkeypatch.setattr(check, "_try", succeed)
    monkeypatch.setenv("GITHUB_TOKEN", value)
    assert check.check(program_of("mcp_github"), load(Github, [])) == status
    output = capsys.readouterr().out
    assert ("✗ settings" in output) is bool(status)
    assert (f"GITHUB_TOKEN is still {value.strip()}: put your own value there" in output) is bool(status)
