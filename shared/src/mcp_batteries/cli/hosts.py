"""The entry for a host's configuration, exact for the way in which this process was installed.

What differs between hosts is in the files of `mcp_batteries.hosts`. The generated pages (`tools.pages`) come from
the same functions, so what a page shows is what `--print-config` prints.
"""

from __future__ import annotations

import json
import os
import re
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit
from urllib.request import url2pathname

from mcp_batteries.cli.spelling import spell, spell_json
from mcp_batteries.errors import Invalid, quote, well_formed
from mcp_batteries.executables import find_executable, quote_command
from mcp_batteries.hosts.definition import HostDefinition, load_host
from mcp_batteries.settings import InstallQuestion, Settings, masked, variable

__all__ = [
    "HIDDEN_SECRET",
    "Input",
    "describe_unusable_paths",
    "entry",
    "environment",
    "launch",
    "make_start_entry",
    "make_url_entry",
    "place",
    "refuse_incomplete",
    "refuse_unusable",
    "secrets_hint",
    "server_url",
    "token_hint",
    "token_question",
    "typed_command",
]


# Stands in entries for a secret that was set, in hosts that ask nobody for it.
HIDDEN_SECRET = "***"


class Input(NamedTuple):
    """A value that VS Code asks its user for once and keeps in its secret storage."""

    id: str
    description: str
    password: bool = False


def launch(command: str, file: str | None = None, extra: str | None = None) -> list[str]:
    """Return the command that starts this installation again from any folder, or `file` if nothing is installed.

    A checkout or git address that `uvx --from` was given is found in the metadata the installer left (PEP 610);
    anything else is named by the absolute path of its executable. A bare package name never appears: on the
    public index it could be a stranger's.
    """
    prefix_folders = set(sys.prefix.split(os.sep))
    try:
        installed = distribution(command)
    except PackageNotFoundError:
        if file is None:
            raise
        if _CACHE_FOLDERS & prefix_folders:
            return [*_uv_run_command(), file]
        return [os.path.abspath(sys.executable), file]
    # The cache is called `uv`, unless UV_CACHE_DIR moves it.
    is_cached = {"uv", *_CACHE_FOLDERS} & prefix_folders
    is_tool = os.sep + "tools" + os.sep in sys.prefix
    if is_cached and not is_tool:
        extras = sorted({*_installed_extras(installed), *filter(None, [extra])})
        address = _address(installed, extras)
        if address:
            return [_find_uv("uvx"), "--from", address, command]
        index = _index_options()
        if index:
            origin = ["--from", _with_extras(installed.name, extras)] if extras else []
            return [_find_uv("uvx"), *index, *origin, command]
    for folder in (os.path.dirname(sys.executable), sysconfig.get_path("scripts")):
        for name in (command, f"{command}.exe"):
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                return [os.path.abspath(path)]
    # No script was installed: the package is a program too.
    (script,) = installed.entry_points.select(group="console_scripts", name=command)
    return [os.path.abspath(sys.executable), "-m", script.module.partition(".")[0]]


# Folders of uv's cache for environments; one in the last disappears with its process.
_CACHE_FOLDERS = {"archive-v0", "builds-v0"}


# The variables that name a package index to uv, and the option that does the same.
_INDEX_NAME = re.compile(r"^[\w.-]+=")
_INDEX_VARIABLES = {"UV_INDEX": "--index", "UV_DEFAULT_INDEX": "--default-index"}


def _index_options() -> list[str]:
    """Return the options with which uvx finds the indexes again that variables name; none if one may hold a secret."""
    options: list[str] = []
    for name, option in _INDEX_VARIABLES.items():
        for index in os.environ.get(name, "").split():
            # An index may have a name before it, as `ours=https://...`.
            named = _INDEX_NAME.match(index)
            label = named[0] if named else ""
            address = index.removeprefix(label)
            if "://" not in address:
                # A folder; a host starts servers in folders of its own.
                address = os.path.abspath(address)
            elif _may_hold_secret(address):
                return []
            options += [option, label + address]
    return options


def _may_hold_secret(address: str) -> bool:
    """Return whether the address of an index has room for a token: some services take one as the name of a user."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return True
    return "@" in parts.netloc or bool(parts.query)


def _refuse_program_in_cache(program: str, settings: Settings) -> None:
    """Refuse an entry for a program in uv's cache, which is gone when uv cleans that.

    Raises:
        Invalid: uvx took this server from an index or a folder that nothing here names, or no entry may.
    """
    if not _CACHE_FOLDERS & set(Path(program).parts):
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
    command = launch(settings.COMMAND, settings.FILE)
    program = command[0]
    name = os.path.basename(program).removesuffix(".exe")
    executable = find_executable(name)
    if executable and os.path.isfile(program) and os.path.samefile(executable, program):
        command = [name, *command[1:]]
    return quote_command([*command, *words])


def _address(installed: Distribution, extras: Sequence[str] = ()) -> str | None:
    """Return the origin of `installed` in the form that installers accept; None if it came from an index (PEP 610)."""
    origin = cast("dict[str, Any]", json.loads(installed.read_text("direct_url.json") or "{}"))
    url = str(origin.get("url", ""))
    if origin.get("vcs_info"):
        address = _repository_address(origin, url)
        return f"{_with_extras(installed.name, extras)} @ {address}" if extras else address
    if url.startswith("file:"):
        path = os.path.normpath(url2pathname(urlsplit(url).path))
        return _with_extras(path, extras)
    return None


def _with_extras(name: str, extras: Sequence[str]) -> str:
    return f"{name}[{','.join(extras)}]" if extras else name


def _installed_extras(installed: Distribution) -> list[str]:
    """Return the extras that a package was installed with, which no installer notes.

    An extra was asked for if all that it brings is there. One that brings nothing more than the package itself is none.
    """
    everything = [*distributions()]
    requirements = _requirements(everything)
    present = {_normalize_name(item.name) for item in everything}
    package = _normalize_name(installed.name)
    needed = _brought_names(requirements, package, None)
    extras: list[str] = []
    for extra in installed.metadata.get_all("Provides-Extra") or []:
        brought = _brought_names(requirements, package, extra) - needed
        if brought and brought <= present:
            extras.append(extra)
    return extras


def _brought_names(requirements: Sequence[_Requirement], package: str, extra: str | None) -> set[str]:
    """Return the names of the packages that an extra brings, or without one what a package always needs."""
    names: set[str] = set()
    for requirement in requirements:
        if (requirement.package, requirement.condition) != (package, extra):
            continue
        names.add(requirement.name)
        for other_extra in filter(None, requirement.extras):
            names |= _brought_names(requirements, requirement.name, other_extra)
    return names


def _repository_address(origin: Mapping[str, Any], url: str) -> str:
    address = f"{origin['vcs_info']['vcs']}+{url}"
    revision = origin["vcs_info"].get("requested_revision")
    if revision:
        address += f"@{revision}"
    if origin.get("subdirectory"):
        address += f"#subdirectory={origin['subdirectory']}"
    return address


def _uv_run_command() -> list[str]:
    """Return `uv run` with the packages of this temporary environment that no other package in it needs."""
    installed = [item for item in distributions() if _CACHE_FOLDERS & set(Path(str(item.locate_file(""))).parts)]
    required = _required_names(installed)
    addresses: list[str] = []
    for item in installed:
        if _normalize_name(item.name) not in required:
            addresses.append(_address(item) or f"{item.name}=={item.version}")
    command = [_find_uv("uv"), "run", "--project", os.getcwd()]
    for address in sorted(addresses):
        command += ["--with", address]
    return command


class _Requirement(NamedTuple):
    """What a package requires.

    Attributes:
        package: the package that requires it.
        extras: the extras that it requires of `name`.
        condition: the extra of `package` without which it is not required.
    """

    package: str
    name: str
    extras: Sequence[str]
    condition: str | None


def _requirements(installed: Sequence[Distribution]) -> list[_Requirement]:
    requirements: list[_Requirement] = []
    for item in installed:
        for text in item.requires or []:
            match = _REQUIREMENT.match(text)
            if match is not None:
                extras = [extra.strip() for extra in (match[2] or "").split(",")]
                package = _normalize_name(item.name)
                requirements.append(_Requirement(package, _normalize_name(match[1]), extras, match[3]))
    return requirements


def _required_names(installed: Sequence[Distribution]) -> set[str]:
    """Return the names of packages that another package needs, for itself or for an extra that is required of it."""
    requirements = _requirements(installed)
    required_extras: set[tuple[str, str]] = set()
    for requirement in requirements:
        for extra in requirement.extras:
            required_extras.add((requirement.name, extra))
    names: set[str] = set()
    for requirement in requirements:
        if not requirement.condition or (requirement.package, requirement.condition) in required_extras:
            names.add(requirement.name)
    return names


# A requirement's name, its extras, and the extra of the package that requires it.
_REQUIREMENT = re.compile(r"""([\w.-]+)\s*(?:\[([^]]*)\])?(?:[^;]*;.*\bextra\s*==\s*["']([^"']*))?""")


def _normalize_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _find_uv(program: str) -> str:
    """Return the absolute path of uv or uvx: a host started from the desktop may not find what a shell finds."""
    running_uv = os.environ.get("UV", "")
    if running_uv:
        folder, name = os.path.split(running_uv)
        path = os.path.join(folder, name.replace("uv", program, 1))
        if os.path.isfile(path):
            return os.path.abspath(path)
    return find_executable(program) or program


def place(host: str, *, windows: bool = sys.platform == "win32") -> str:
    """Say where the entry for `host` goes, in words for a person."""
    location = load_host(host).location
    if windows and location.windows_words:
        return location.windows_words
    return location.words


def entry(host: str, settings: Settings, *, absolute: bool = False) -> str:
    """Return the configuration text for `host` that starts, or connects to, a server with these settings.

    Args:
        absolute: name the program by its absolute path, because desktop programs often do not have it on their path.

    Raises:
        Invalid: the host cannot connect as the settings say, or would misread a name in them.
    """
    name = settings.entry_name
    if settings.transport == "stdio":
        program, *arguments = launch(settings.COMMAND, settings.FILE, settings.EXTRA)
        _refuse_program_in_cache(program, settings)
        if absolute and not os.path.isabs(program):
            program = find_executable(program) or program
        words = [program, *arguments, *settings.serving.arguments()]
        for word in words:
            _check_name(host, word)
        return make_start_entry(host, name, words, environment(settings))
    if settings.socket_url is not None and not load_host(host).unix_socket:
        raise Invalid(f"{host} connects to no Unix socket: leave out --socket.")
    url = server_url(settings)
    assert url is not None
    token = token_question(host, settings)
    return make_url_entry(host, name, url, sse=settings.transport == "sse", token=token)


def token_question(host: str, settings: Settings) -> InstallQuestion | None:
    """Return the variable that holds a caller's token for the server; None if it asks for none in an entry.

    Hosts ask an OAuth issuer for tokens themselves, and some document no header.
    """
    is_asked = settings.transport != "stdio" and (settings.auth_file or settings.auth_tokens)
    if not is_asked or settings.auth_issuer or load_host(host).entry.token is None:
        return None
    # Not a name that begins like the server's own variables, of which it refuses unknown ones.
    name = f"MCP_TOKEN_{settings.entry_name}".upper().replace("-", "_")
    return InstallQuestion("token", f"Token for {settings.COMMAND}", HIDDEN_SECRET, variable=name, secret=True)


def server_url(settings: Settings) -> str | None:
    """Return the address to which hosts connect; None if they start the server."""
    if settings.transport == "stdio":
        return None
    if settings.socket_url is not None:
        return settings.socket_url
    if settings.public_url is not None:
        return settings.public_url
    path = "mcp" if settings.transport == "http" else "sse"
    return f"http://{settings.host}:{settings.port}/{path}"


def _check_name(host: str, word: str) -> None:
    """Refuse names with which the host would start the server on the wrong folder or file."""
    fix = "Name it by a link with a plain name."
    if well_formed(word) != word:
        raise Invalid(f"{quote(word)} is not UTF-8, and hosts' files can hold nothing else.", fix)
    variables = load_host(host).variables
    if variables is not None:
        match = re.search(variables.replaced, word)
        if match is not None:
            raise Invalid(f"{host} takes `{match[0]}` in {quote(word)} for a variable and puts its value there.", fix)


def describe_unusable_paths(settings: Settings) -> str:
    """Return sentences about files and folders in the settings that the server can't serve; empty if it can."""
    process, *mounted = settings.parts()
    missing: list[str] = []
    sentences: list[str] = []
    for member in mounted or [process]:
        missing.extend(quote(path) for path in member.absent())
        sentences.extend(member.unusable())
    if missing:
        sentences.insert(0, f"Not there, and the server needs it: {', '.join(missing)}.")
    return "\n".join(sentences)


def refuse_unusable(host: str, settings: Settings) -> None:
    """Refuse settings that name what is not there or can't be served: `host` would start the server in vain.

    Raises:
        Invalid: they do.
    """
    if settings.transport != "stdio":
        return
    sentences = describe_unusable_paths(settings)
    if sentences:
        raise Invalid(
            sentences, f"Nothing was changed: correct that first. --print-config {host} prints the entry anyway."
        )


def refuse_incomplete(settings: Settings) -> None:
    """Refuse settings with which a host would start a server that has nothing to serve, and so ends at once."""
    if settings.transport != "stdio":
        return
    process, *mounted = settings.parts()
    for member in mounted or [process]:
        question = member.unanswered()
        if question is not None:
            raise Invalid(
                f"The command names no {question.name}, and {member.COMMAND} does not start without one.",
                f"Name one, such as {question.example}.",
            )


def environment(settings: Settings) -> list[InstallQuestion]:
    """Return the variables of an entry: secrets that were set, and required values that were not.

    An entry that connects to a URL starts nothing and has no variables.
    """
    if settings.transport != "stdio":
        return []
    variables: list[InstallQuestion] = []
    for member in settings.parts():
        variables.extend(_environment_of(member))
    return variables


def _environment_of(settings: Settings) -> list[InstallQuestion]:
    secrets = settings.secrets()
    questions = {question.variable: question for question in settings.open_questions() if question.variable}
    variables: list[InstallQuestion] = []
    for name, field in type(settings).model_fields.items():
        key = variable(type(settings), name)
        if key in secrets:
            default = InstallQuestion(name, str(field.description).rstrip("."), "", variable=key, secret=True)
            question = questions.pop(key, default)
            variables.append(question._replace(example=_mask_secret(secrets[key])))
        elif getattr(settings, name) != field.default:
            questions.pop(key, None)
    return [*variables, *questions.values()]


def _mask_secret(value: str) -> str:
    """Return what hosts without a place for secrets show: all but the password of a URL, and nothing of a key."""
    without_password = masked(value)
    if without_password == value:
        return HIDDEN_SECRET
    return without_password


def make_start_entry(
    host: str, name: str, words: Sequence[str], variables: Sequence[InstallQuestion] = (), inputs: Sequence[Input] = ()
) -> str:
    """Return the entry for `host` that starts a server with `words`.

    Args:
        variables: the server's environment; where possible, the host supplies a secret's value.
        inputs: other values that VS Code asks for; `words` contain `${input:ID}` in their place.
    """
    definition = load_host(host)
    program, *arguments = words
    environment = _environment_values(definition, variables)
    values = {
        "$name": name,
        "$program": program,
        "$arguments": arguments,
        "$command": list(words),
        "$environment": environment,
        "$variables": list(environment),
    }
    questions: dict[str, Any] = {}
    if definition.asks_inputs:
        secrets = [
            Input(question.variable, question.title, question.secret) for question in variables if question.variable
        ]
        questions = _ask_inputs([*inputs, *secrets])
    return _write_entry(definition, name, _fill_in(definition.entry.start, values), questions)


def _environment_values(definition: HostDefinition, questions: Sequence[InstallQuestion]) -> dict[str, str]:
    """Return the values of an entry's variables: how the host takes each from its user, or an example."""
    values: dict[str, str] = {}
    for question in questions:
        if question.variable:
            values[question.variable] = _variable_form(definition, question)
    return values


def _variable_form(definition: HostDefinition, question: InstallQuestion) -> str:
    variables = definition.variables
    if variables is None or variables.form is None:
        return question.example
    form = variables.form
    if variables.optional_form and not question.required:
        form = variables.optional_form
    return form.replace("NAME", str(question.variable))


def secrets_hint(host: str, variables: Sequence[InstallQuestion], text: str, place: str) -> str:
    """Say what a person has to do so that the server gets the values that no entry holds.

    Args:
        place: where an example stands for them in the entry `text`, in hosts that take no variable.
    """
    definition = load_host(host)
    names = ", ".join(sorted(str(question.variable) for question in variables))
    if definition.asks_inputs:
        hint = f"{definition.title} asks you for {names} when it starts the server"
        if not any(question.required for question in variables):
            hint += "; left empty, the server does without"
        return hint
    if any(question.example in text for question in variables):
        return f"set {names} {place}"
    return f"set {names} where the host finds it"


def token_hint(host: str, token: InstallQuestion, text: str) -> str:
    """Say what a person has to do so that the host sends the token with an entry."""
    if load_host(host).asks_inputs:
        return f"{load_host(host).title} asks you for it"
    if HIDDEN_SECRET in text:
        return f"write it in place of {HIDDEN_SECRET}"
    return f"set {token.variable} where the host finds it"


def make_url_entry(host: str, name: str, url: str, *, sse: bool = False, token: InstallQuestion | None = None) -> str:
    """Return the entry for `host` that connects to a server at `url`.

    Args:
        token: the variable that holds a token, if the server asks for one.

    Raises:
        Invalid: the host takes no URL.
    """
    definition = load_host(host)
    template = definition.entry.http
    refusal = definition.refusals.http
    if sse:
        template = definition.entry.sse
        refusal = definition.refusals.sse
    if template is None:
        raise Invalid(str(refusal))
    filled = _fill_in(template, {"$name": name, "$url": url})
    if token is None or definition.entry.token is None:
        return _write_entry(definition, name, filled, {})
    filled |= _fill_in_token(definition, token)
    questions: dict[str, Any] = {}
    if definition.asks_inputs:
        questions = _ask_inputs([Input(str(token.variable), token.title, password=True)])
    return _write_entry(definition, name, filled, questions)


def _fill_in_token(definition: HostDefinition, token: InstallQuestion) -> dict[str, Any]:
    """Return the part of an entry with which the host sends a token."""
    value = HIDDEN_SECRET if definition.entry.token_literal else _variable_form(definition, token)

    def fill_in(item: Any) -> Any:
        if isinstance(item, Mapping):
            return {key: fill_in(inner) for key, inner in cast("Mapping[str, Any]", item).items()}
        return str(item).replace("$token_variable", str(token.variable)).replace("$token", value)

    return fill_in(definition.entry.token)


def _fill_in(template: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry that a template makes of values; an environment without variables is left out."""
    filled: dict[str, Any] = {}
    for key, item in template.items():
        if item in ("$environment", "$variables") and not values[item]:
            continue
        filled[key] = item
        if isinstance(item, str):
            filled[key] = values.get(item, item)
    return filled


def _write_entry(definition: HostDefinition, name: str, entry: dict[str, Any], questions: Mapping[str, Any]) -> str:
    """Write an entry in the language of the host's file, in its container."""
    container = definition.entry.container
    match definition.format.language:
        case "toml":
            return "\n".join([f"[{container}.{name}]", *(f"{key} = {spell(value)}" for key, value in entry.items())])
        case "yaml":
            lines = [f"    {key}: {spell(value)}" for key, value in entry.items()]
            return "\n".join([f"{container}:", f"  {name}:", *lines])
        case "json":
            return spell_json({**questions, container: {name: entry}})


def _ask_inputs(inputs: Sequence[Input]) -> dict[str, Any]:
    questions: list[dict[str, Any]] = []
    for item in inputs:
        question: dict[str, Any] = {"type": "promptString", "id": item.id, "description": item.description}
        if item.password:
            question["password"] = True
        questions.append(question)
    if not questions:
        return {}
    return {"inputs": questions}
