"""The command that starts this server again, exact for the way in which it was installed."""

from __future__ import annotations

import json
import os
import re
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit
from urllib.request import url2pathname

from mcp_batteries.cli.host_entry.requirements import find_installed_extras, leave_out_required
from mcp_batteries.errors import Invalid
from mcp_batteries.executables import find_executable, quote_command
from mcp_batteries.settings import Settings

__all__ = ["find_launch_command", "refuse_cached_program", "typed_command"]

# Folders of uv's cache for environments; one in the last disappears with its process.
_CACHE_FOLDERS = {"archive-v0", "builds-v0"}
# The variables that name a package index to uv, and the option that does the same.
_INDEX_VARIABLES = {"UV_INDEX": "--index", "UV_DEFAULT_INDEX": "--default-index"}
# An index may have a name before it, as `ours=https://...`.
_INDEX_NAME = re.compile(r"^[\w.-]+=")


def find_launch_command(command: str, file: str | None = None, extra: str | None = None) -> list[str]:
    """Return the command that starts this installation again from any folder, or `file` if nothing is installed.

    A bare package name never appears: on the public index it could be a stranger's.

    Raises:
        PackageNotFoundError: nothing is installed, and there is no file.
    """
    try:
        installed = distribution(command)
    except PackageNotFoundError:
        if file is None:
            raise
        return _file_command(file)
    if _is_environment_of_uvx():
        again = _uvx_command(installed, command, extra)
        if again is not None:
            return again
    return _installed_command(installed, command)


def _file_command(file: str) -> list[str]:
    """Return the command that runs a server in one file, with the packages that this process has."""
    if _is_cached(sys.prefix):
        return [*_uv_run_command(), file]
    return [os.path.abspath(sys.executable), file]


def _uv_run_command() -> list[str]:
    """Return `uv run` with the packages of this temporary environment that no other package in it needs."""
    installed = [item for item in distributions() if _is_cached(str(item.locate_file("")))]
    addresses: list[str] = []
    for item in leave_out_required(installed):
        addresses.append(_find_origin(item) or f"{item.name}=={item.version}")
    command = [_find_uv("uv"), "run", "--project", os.getcwd()]
    for address in sorted(addresses):
        command += ["--with", address]
    return command


def _is_environment_of_uvx() -> bool:
    """Return whether uvx made the environment of this process; `uv tool install` makes those that stay."""
    # The cache is called `uv`, unless UV_CACHE_DIR moves it.
    is_of_uv = _is_cached(sys.prefix) or "uv" in Path(sys.prefix).parts
    is_tool = os.sep + "tools" + os.sep in sys.prefix
    return is_of_uv and not is_tool


def _is_cached(path: str) -> bool:
    """Return whether a path leads into uv's cache, which uv cleans."""
    return not _CACHE_FOLDERS.isdisjoint(Path(path).parts)


def _uvx_command(installed: Distribution, command: str, extra: str | None) -> list[str] | None:
    """Return how uvx starts a package from where it took it; None if nothing says where that was, or no entry may."""
    extras = set(find_installed_extras(installed))
    if extra:
        extras.add(extra)
    origin = _find_origin(installed, sorted(extras))
    if origin:
        return [_find_uv("uvx"), "--from", origin, command]
    index = _index_options()
    if not index:
        return None
    if extras:
        return [_find_uv("uvx"), *index, "--from", _with_extras(installed.name, sorted(extras)), command]
    return [_find_uv("uvx"), *index, command]


def _installed_command(installed: Distribution, command: str) -> list[str]:
    """Return the absolute path of a package's script, or how Python starts the package if it has none here."""
    for folder in (os.path.dirname(sys.executable), sysconfig.get_path("scripts")):
        for name in (command, f"{command}.exe"):
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                return [os.path.abspath(path)]
    (script,) = installed.entry_points.select(group="console_scripts", name=command)
    # Hosts start servers in the folder of a project, whose modules Python would prefer without -P.
    return [os.path.abspath(sys.executable), "-P", "-m", script.module.partition(".")[0]]


def _find_origin(installed: Distribution, extras: Sequence[str] = ()) -> str | None:
    """Return the folder or repository of a package, in the form that installers accept; None if it is of an index.

    The installer has left it in the package's metadata (PEP 610).
    """
    origin = cast("dict[str, Any]", json.loads(installed.read_text("direct_url.json") or "{}"))
    url = str(origin.get("url", ""))
    if origin.get("vcs_info"):
        address = _repository_address(origin, url)
        if extras:
            return f"{_with_extras(installed.name, extras)} @ {address}"
        return address
    if url.startswith("file:"):
        path = os.path.normpath(url2pathname(urlsplit(url).path))
        return _with_extras(path, extras)
    return None


def _repository_address(origin: Mapping[str, Any], url: str) -> str:
    address = f"{origin['vcs_info']['vcs']}+{url}"
    revision = origin["vcs_info"].get("requested_revision")
    if revision:
        address += f"@{revision}"
    if origin.get("subdirectory"):
        address += f"#subdirectory={origin['subdirectory']}"
    return address


def _with_extras(name: str, extras: Sequence[str]) -> str:
    if not extras:
        return name
    return f"{name}[{','.join(extras)}]"


def _index_options() -> list[str]:
    """Return the options with which uvx finds the indexes again that variables name; none if one may hold a secret."""
    options: list[str] = []
    for variable, option in _INDEX_VARIABLES.items():
        for index in os.environ.get(variable, "").split():
            match = _INDEX_NAME.match(index)
            name = match[0] if match else ""
            address = index.removeprefix(name)
            if "://" not in address:
                # A folder; a host starts servers in folders of its own.
                address = os.path.abspath(address)
            elif _may_hold_secret(address):
                return []
            options += [option, name + address]
    return options


def _may_hold_secret(address: str) -> bool:
    """Return whether the address of an index has room for a token: some services take one as the name of a user."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return True
    return "@" in parts.netloc or bool(parts.query)


def _find_uv(program: str) -> str:
    """Return the absolute path of uv or uvx: a host started from the desktop may not find what a shell finds."""
    running_uv = os.environ.get("UV", "")
    if running_uv:
        folder, name = os.path.split(running_uv)
        path = os.path.join(folder, name.replace("uv", program, 1))
        if os.path.isfile(path):
            return os.path.abspath(path)
    return find_executable(program) or program


def refuse_cached_program(program: str, settings: Settings) -> None:
    """Refuse an entry for a program in uv's cache, which is gone when uv cleans that.

    Raises:
        Invalid: uvx took this server from an index or a folder that nothing here names, or no entry may.
    """
    if not _is_cached(program):
        return
    for name in _INDEX_VARIABLES:
        if os.environ.get(name):
            raise Invalid(
                f"{name} has an address with a user, a password or a query, and an entry must not hold a secret.",
                f"Install the server first, with the same variable: `uv tool install {settings.COMMAND}`.",
            )
    raise Invalid(
        "uvx does not say from which index or folder of wheels it took this server, so no entry can name it.",
        f"Put an index into UV_INDEX instead of --index, or install the server first, as with "
        f"`uv tool install --index ADDRESS {settings.COMMAND}`.",
    )


def typed_command(settings: Settings, *words: str) -> str:
    """Return how a person types this server's command: by name if a shell finds the same program."""
    command = find_launch_command(settings.COMMAND, settings.FILE)
    program = command[0]
    name = os.path.basename(program).removesuffix(".exe")
    executable = find_executable(name)
    if executable and os.path.isfile(program) and os.path.samefile(executable, program):
        command = [name, *command[1:]]
    return quote_command([*command, *words])
