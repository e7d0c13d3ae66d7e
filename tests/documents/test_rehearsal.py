"""What people do with a release works from an index: start, install, upgrade, go back; bundles hold the same wheels."""

import pytest

from tools.rehearsal import rehearse


@pytest.mark.weekly
def test_a_release_of_this_commit_can_be_used_from_an_index(capsys: pytest.CaptureFixture[str]) -> None:
    rehearse()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 9 and all(line.startswith(("✓", "– images")) for line in lines)
