"""Trusted types are made by policies only, and every setting is read; both are seen to fail where they should."""

import importlib
from pathlib import Path

import pytest

from contract.test_contract import FOLDERS, ROOT
from house.rules import (
    find_stale_docstrings,
    made_elsewhere,
    never_read,
    parsed_elsewhere,
    private_imports,
    shown_as_windows,
)
from tools.docs import package_of

SERVERS = [folder for folder in FOLDERS if package_of(folder)]


@pytest.mark.slow
def test_only_policy_makes_trusted_types() -> None:
    found = [
        f"{folder.relative_to(ROOT).as_posix()}/{place}"
        for folder in {source for member in FOLDERS for source in member.glob("src")}
        for place in made_elsewhere(folder)
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "from toy.policy import Folder\nFolder('/etc')",
        "from toy.policy import Folder as Place\nPlace('/etc')",
        "from toy import policy\npolicy.Folder('/etc')",
        "import toy.policy\ntoy.policy.Folder('/etc')",
        "from toy.policy import Folder\nlist(map(Folder, ['/etc']))",
        "from toy.policy import Folder\npartial(make=Folder)",
        "from common.requests import Rows\nRows('secrets')",
        "from toy.policy import Rows\nRows('secrets')",
    ],
)
def test_a_planted_maker_is_found(tmp_path: Path, line: str) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy/policy.py").write_text(
        "from common.requests import Rows, quote\n"
        "__all__ = ['Folder', 'Policy', 'PolicySettings', 'Rows']\n"
        "class PolicySettings(Protocol): ...\nclass Folder: ...\nclass Policy:\n"
        "    def folder(self, path): return Folder(path)\n",
        "utf-8",
    )
    (tmp_path / "toy/engine.py").write_text(
        "from toy.policy import Folder, Policy\nfrom models import Rows\n"
        "def read(at: Folder): return isinstance(at, Folder), Policy(), Rows()\n",
        "utf-8",
    )
    assert made_elsewhere(tmp_path) == []
    (tmp_path / "toy/engine.py").write_text(line, "utf-8")
    assert [place.partition(":")[0] for place in made_elsewhere(tmp_path)] == ["toy/engine.py"]


def test_only_the_parser_calls_a_policy() -> None:
    found = [place for folder in SERVERS for place in parsed_elsewhere(folder / "src")]
    assert found == []


TOOLS = """
from toy.policy import Folder, Policy, TOP, parse_folder
Served = Annotated[Folder, trusted(Policy.folder), trusted(parse=parse_folder)]
@tool("Get folder")
def get_folder(policy: Policy, *, folder: Served = default("")):
    return read(policy, folder, TOP, isinstance(folder, Folder))
"""


@pytest.mark.parametrize(
    "call",
    [
        "policy.folder('/etc')",
        "parse_folder('/etc')",
        "list(map(parse_folder, names))",
        "sorted(names, key=Policy.folder)",
    ],
)
def test_a_planted_call_of_a_policy_is_found(tmp_path: Path, call: str) -> None:
    (tmp_path / "toy/tools").mkdir(parents=True)
    tools = tmp_path / "toy/tools/read.py"
    tools.write_text(TOOLS, "utf-8")
    assert parsed_elsewhere(tmp_path) == []
    tools.write_text(f"{TOOLS}def other(policy, names):\n    return {call}\n", "utf-8")
    assert [place.partition(":")[0] for place in parsed_elsewhere(tmp_path)] == ["toy/tools/read.py"]
    # Also where a toolset has a folder of its own.
    (tmp_path / "toy/tools/deep").mkdir()
    deep = tools.rename(tmp_path / "toy/tools/deep/read.py")
    assert [place.partition(":")[0] for place in parsed_elsewhere(tmp_path)] == ["toy/tools/deep/read.py"]
    tools = deep
    # Tools that are methods parse what callers send themselves.
    tools.write_text(f"from toy.policy import parse_folder\ndef other(policy, names):\n    return {call}\n", "utf-8")
    assert parsed_elsewhere(tmp_path) == []


@pytest.mark.parametrize(
    ("returns", "found"),
    [(" -> None", 0), (" -> list[str]", 0), (" -> Folder | None", 1), (" -> list[Folder]", 1), ("", 1)],
)
def test_a_tool_may_ask_a_policy_what_makes_no_trusted_type(tmp_path: Path, returns: str, found: int) -> None:
    (tmp_path / "toy/tools").mkdir(parents=True)
    method = f"    def require_served(self, path: str){returns}: ..."
    policy = f"__all__ = ['Folder', 'Policy']\nclass Folder: ...\nclass Policy:\n{method}\n"
    (tmp_path / "toy/policy.py").write_text(policy, "utf-8")
    tools = f"{TOOLS}def other(policy, names):\n    policy.require_served('/etc')\n"
    (tmp_path / "toy/tools/read.py").write_text(tools, "utf-8")
    assert len(parsed_elsewhere(tmp_path)) == found


@pytest.mark.parametrize("module", ["toy.policy", "toy.policy.folders"])
def test_a_policy_may_be_a_folder(tmp_path: Path, module: str) -> None:
    (tmp_path / "toy/policy").mkdir(parents=True)
    (tmp_path / "toy/policy/__init__.py").write_text(
        "from toy.policy.folders import Folder, folder_at\n__all__ = ['Folder', 'folder_at']\n", "utf-8"
    )
    (tmp_path / "toy/policy/folders.py").write_text(
        "__all__ = ['Folder', 'folder_at']\nclass Folder: ...\ndef folder_at(path): return Folder(path)\n", "utf-8"
    )
    engine = tmp_path / "toy/engine.py"
    engine.write_text(f"from {module} import Folder, folder_at\nfolder_at('/etc')", "utf-8")
    assert made_elsewhere(tmp_path) == []
    engine.write_text(f"from {module} import Folder\nFolder('/etc')", "utf-8")
    assert made_elsewhere(tmp_path) == ["toy/engine.py: Folder"]


@pytest.mark.share(2)
@pytest.mark.parametrize("folder", SERVERS, ids=lambda folder: folder.name)
def test_every_setting_is_read(folder: Path) -> None:
    kind = importlib.import_module(f"{package_of(folder)}.settings").Settings
    assert never_read(kind.model_fields, [ROOT / "shared/src", folder / "src"]) == []


def test_a_planted_setting_that_nobody_reads_is_found(tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text("class Settings:\n    def all(self): return self.inside\n", "utf-8")
    (tmp_path / "server.py").write_text(
        "def build(settings, other):\n    settings.written = settings.read\n    self._settings.kept + other.unread\n",
        "utf-8",
    )
    names = ["inside", "kept", "read", "unread", "written"]
    assert never_read(names, [tmp_path]) == ["unread", "written"]


def test_members_import_public_names_of_the_common_package() -> None:
    assert [found for member in FOLDERS for found in private_imports(member / "src", "mcp_batteries")] == []


@pytest.mark.parametrize("name", ["_private", "not_in_all"])
def test_a_planted_private_import_is_found(tmp_path: Path, name: str) -> None:
    (tmp_path / "room.py").write_text(f"from mcp_batteries.errors import quote, {name}\n", "utf-8")
    assert private_imports(tmp_path, "mcp_batteries") == [f"room.py: {name}"]


def test_no_process_of_a_server_opens_a_window(tmp_path: Path) -> None:
    found = [place for folder in SERVERS for place in shown_as_windows(folder / "src") if "/testing/" not in place]
    # The process that keeps PostgreSQL for a demonstration has no window itself, and is for POSIX so far.
    assert {place.partition(":")[0] for place in found} <= {"mcp_postgres/engine/demo/process.py"}
    (tmp_path / "a.py").write_text("subprocess.run(['a'])\nPopen(['b'], creationflags=NO_WINDOW)\n", "utf-8")
    assert shown_as_windows(tmp_path) == ["a.py:1"]


@pytest.mark.slow
def test_docstrings_describe_what_is_there() -> None:
    assert [name for member in FOLDERS for name in find_stale_docstrings(member / "src")] == []


ROOM = '''
class Room:
    """A room.

    Attributes:
        door: one.
            hint: no name.
        windows: many.
    """

    door: str

    def enter(self, by: str, *doors: str, key: str) -> None:
        """Go in.

        Args:
            by, key: how.
            *doors: where.
            way: where.

        Returns:
            nothing: at all.
        """
'''


def test_a_planted_docstring_of_an_old_name_is_found(tmp_path: Path) -> None:
    (tmp_path / "room.py").write_text(ROOM, "utf-8")
    assert find_stale_docstrings(tmp_path) == ["room.py: Room.windows", "room.py: enter.way"]
