from pathlib import Path

import pytest

from markers import anyio_backend as anyio_backend
from mcp_batteries.processes.sandbox import NoSandbox, Sandbox, find_sandbox


@pytest.fixture(scope="session")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configuration of a user who has told git their name, as no test machine's user may have."""
    path = tmp_path_factory.mktemp("home") / "gitconfig"
    path.write_text("[user]\n\tname = Grace Hopper\n\temail = grace@example.org\n")
    return path


@pytest.fixture(autouse=True)
def _user(configuration: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(configuration))


@pytest.fixture(params=["sandbox", "no sandbox"])
def is_confined(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the kernel confines git, once as it does and once as on a system that has nothing for that."""
    if request.param == "sandbox":
        skip_without_sandbox()
        return True
    forbid_sandbox(monkeypatch)
    return False


def skip_without_sandbox() -> None:
    """Skip a test whose subject is the kernel, where it has no sandbox."""
    try:
        find_sandbox()
    except NoSandbox as problem:
        pytest.skip(f"nothing confines a process here: {problem}")


def forbid_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the server find no sandbox."""

    def none() -> Sandbox:
        raise NoSandbox("the test has none")

    monkeypatch.setattr("mcp_git.engine.program.git_binary.find_sandbox", none)
