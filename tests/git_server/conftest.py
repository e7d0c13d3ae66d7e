from pathlib import Path

import pytest

from markers import anyio_backend as anyio_backend


@pytest.fixture(scope="session")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configuration of a user who has told git their name, as no test machine's user may have."""
    path = tmp_path_factory.mktemp("home") / "gitconfig"
    path.write_text("[user]\n\tname = Grace Hopper\n\temail = grace@example.org\n")
    return path


@pytest.fixture(autouse=True)
def _user(configuration: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(configuration))
