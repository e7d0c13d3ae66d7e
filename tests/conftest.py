"""What all tests share."""

import atexit
import gc
import inspect
import logging
import os
import shutil
import ssl
import sys
import tempfile
from collections.abc import Callable, Generator
from functools import cache, partialmethod
from pathlib import Path
from typing import Any, cast

import hypothesis
import pytest
from httpx2._transports import default as transports
from mcp.server.mcpserver.tools.base import Tool

from e2e.installing import ROOT, UV, run
from markers import COLLECTED, mark
from mcp_batteries.redaction.own import forget_secrets
from mcp_batteries.server.calling.tool import StrictTool
from thinning import thin

# The programs of the development group (ripgrep, uv ...), whichever way pytest was started.
os.environ["PATH"] = str(Path(sys.executable).parent) + os.pathsep + os.environ.get("PATH", "")

if "PYTEST_XDIST_WORKER" not in os.environ:
    # What servers keep for their user is not kept for who runs the tests.
    os.environ["XDG_STATE_HOME"] = state = tempfile.mkdtemp(prefix="mcp-tests-")
    atexit.register(shutil.rmtree, state, ignore_errors=True)
    os.environ["MCP_FS_TEXT_MEGABYTES"] = "0"

if sys.platform == "win32":
    # Files have the line ends that the tests spell.
    Path.write_text = partialmethod(Path.write_text, newline="\n")  # type: ignore[method-assign]

# Tests judge no times: an example may take as long as a busy machine needs.
hypothesis.settings.register_profile("home", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("home")
# For `tests/mutants`: an example that fails is enough, nobody reads the smallest one.
hypothesis.settings.register_profile(
    "mutants", phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate], derandomize=True, database=None
)
# For `tests/windows`: the examples were tried in numbers on Linux; here they meet another system.
hypothesis.settings.register_profile("few", max_examples=10, derandomize=True, database=None)
# Where the same examples are taken every time, half of them find as much the second time; whoever runs the tests at
# home tries others each time, and all of them.
if os.environ.get("CI"):
    hypothesis.settings.register_profile("ci", hypothesis.settings.get_profile("ci"), max_examples=50)
    hypothesis.settings.load_profile("ci")

_create_ssl_context = transports.create_ssl_context


@cache
def _plain_context(trust_env: bool, file: str | None, folder: str | None) -> ssl.SSLContext:
    """Return the context with the authorities of the system, or of what the environment names."""
    return _create_ssl_context(trust_env=trust_env)


def _ssl_context(verify: Any = True, cert: Any = None, trust_env: bool = True) -> ssl.SSLContext:
    """Load what each client would load anew once: most clients of the tests speak plain HTTP."""
    if verify is not True or cert:
        return _create_ssl_context(verify=verify, cert=cert, trust_env=trust_env)
    return _plain_context(trust_env, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


transports.create_ssl_context = _ssl_context

_declare = StrictTool.from_function
_declared: dict[Any, Tool] = {}


def _declare_once(fn: Callable[..., Any], structured_output: bool | None = None, **given: Any) -> Tool:
    """Read the schema of a tool off its function once: tests build thousands of servers of the same functions."""
    # What a server publishes of a tool's function is made for each server, and alike.
    function = getattr(fn, "__func__", None) or getattr(fn, "__wrapped__", fn)
    key: Any = function
    if "<locals>" in function.__qualname__:
        # So is a function that is defined for each server.
        signature = repr(inspect.signature(fn))
        key = function.__module__, function.__qualname__, function.__name__, function.__doc__, signature
    if key not in _declared:
        tool = _declare(fn, structured_output=structured_output, **given)
        # A method would keep its server, with all that it has open.
        _declared[key] = tool.model_copy(update={"fn": None})
    tool = _declared[key]
    # The parameters are replaced by their slim form, and stay as they are.
    return tool.model_copy(update={**given, "fn_metadata": tool.fn_metadata.model_copy(), "fn": fn})


StrictTool.from_function = _declare_once


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheels of every workspace member."""
    folder = tmp_path_factory.mktemp("wheels")
    run(UV, "build", "--quiet", "--all-packages", "--out-dir", folder, cwd=ROOT)
    return folder


@pytest.fixture(autouse=True)
def our_loggers_stay_as_they_are() -> Generator[None]:
    """A test that silences them would hide what others, later in the same process, wait for."""
    before = _loggers()
    yield
    changed = {name: state for name, state in _loggers().items() if before.get(name, state) != state}
    assert changed == {}


def _loggers() -> dict[str, tuple[int, bool, bool]]:
    """Level, propagation and whether it is switched off, of each logger of the project."""
    found = {name: logging.getLogger(name) for name in ("mcp_batteries", *logging.root.manager.loggerDict)}
    ours = {name: logger for name, logger in found.items() if name.startswith("mcp_")}
    return {name: (logger.level, logger.propagate, logger.disabled) for name, logger in ours.items()}


@pytest.fixture(scope="session", autouse=True)
def every_request_to_github_is_one_it_knows() -> Generator[None]:
    """Whatever test sent it, from whatever process: the oracles have judged it."""
    yield
    oracle = sys.modules.get("github_server.oracle.server")
    assert oracle is None or oracle.violations == []


# What is collected stays to the end: nobody has to look through it for garbage, then or later.
gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.enable()
    gc.freeze()
    # A process that ends in minutes may keep more garbage than one that serves for months.
    gc.set_threshold(20_000, 20, 20)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mark(items)
    thin(items)
    config.stash[COLLECTED] = [item.nodeid for item in items]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what `tools/list` of each server weighs, whichever process looked."""
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name == "bytes":
                terminalreporter.write_line(str(value))


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Escape what is not Unicode in a report: a worker could not send it, and the whole run would end."""
    return _escape_surrogates((yield))


def _escape_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_escape_surrogates(key): _escape_surrogates(item) for key, item in cast("Any", value).items()}
    if isinstance(value, (list, tuple)):
        return type(cast("Any", value))(map(_escape_surrogates, cast("Any", value)))
    return value


@pytest.fixture(autouse=True)
def no_secrets_of_other_tests() -> Generator[None]:
    """Messages hide what a process knows as a secret, and one process runs many tests."""
    yield
    forget_secrets()
