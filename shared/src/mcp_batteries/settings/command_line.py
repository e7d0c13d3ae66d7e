"""The command line of a settings class: its help, and one line for each mistake."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence
from functools import cache
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin

import click
from annotated_types import Ge, Le
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from mcp_batteries.errors import describe_os_error
from mcp_batteries.settings.declared import (
    ALL_HOSTS,
    Positional,
    Secret,
    Settings,
    Short,
    file_variable,
    mask_passwords,
    placeholder,
    remember_secrets,
    variable,
)
from mcp_batteries.settings.paths import to_absolute_path
from mcp_batteries.settings.text_files import open_text

__all__ = ["ONLY_OVER_HTTP", "colour_choice", "load"]

# The help shows so many choices beside the flag; more of them go into its text.
_MAX_SHOWN_CHOICES = 5
_ONE_OF = " One of: "

S = TypeVar("S", bound=Settings)


_OTHER_DASH = re.compile("[\u2010-\u2015\u2212][-\u2010-\u2015\u2212]?([a-z].*)")
# What a server does instead of serving; the first that is set would win over the others.
_ACTIONS = ("version", "new_token", "print_config", "install", "uninstall", "purge", "check")
_COMBINABLE_ACTIONS = {"uninstall", "purge"}
# These read no option of a server, so that a command of `--install` can be repeated with one of them.
_ACTIONS_WITHOUT_SETTINGS = ("version", "new_token", "uninstall", "purge")
ONLY_OVER_HTTP = (
    "host",
    "port",
    "socket",
    "public_url",
    "server_card",
    "json_response",
    "param_headers",
    "allowed_host",
    "allowed_origin",
    "metrics",
    *Settings.GROUPS["Access over HTTP"],
    *Settings.GROUPS["Limits over HTTP"],
)
# What the transport of old clients does not have: each of their messages is answered on one stream.
_NOT_OVER_SSE = (
    "rate_calls", "rate_bytes", "max_parallel", "max_sessions", "session_seconds", "max_streams", "max_streams_each",
    "json_response", "param_headers",
)  # fmt: skip


def _refuse_other_dashes(arguments: Sequence[str]) -> None:
    """Refuse an option whose dash a word processor or a web page has replaced, which would be taken for a path."""
    for argument in arguments:
        match = _OTHER_DASH.fullmatch(argument)
        if match is not None:
            raise click.UsageError(f"'{argument}' begins with another dash. Type it: --{match[1]}.")


def load(kind: type[S], arguments: Sequence[str]) -> S:
    """Return the settings from `arguments` and the environment.

    Raises:
        SystemExit: with 0 after `--help`; with 2 after one line on standard error about the mistake.
    """
    command = _Command(
        kind,
        kind.COMMAND,
        params=[*_parameters(kind)],
        help=kind.__doc__,
        context_settings={
            "help_option_names": ["-h", "--help"],
            "max_content_width": 110,
            "show_default": True,
            "allow_interspersed_args": not kind.OPTIONS_FIRST,
            "allow_extra_args": True,
            "color": colour_choice(),
        },
    )
    try:
        _refuse_unknown_variables(kind)
        _refuse_other_dashes(arguments)
        with command.make_context(kind.COMMAND, list(arguments), default_map=_secrets_in_files(kind)) as context:
            _refuse_plain_arguments(kind, context.args)
            _refuse_options_without_dashes(kind, context)
            try:
                settings = kind(**context.params)
                settings.origins.update(_find_origins(context, kind))
                _refuse_options_without_effect(settings)
                remember_secrets(settings)
                return settings
            except ValidationError as error:
                raise _usage_error(error) from None
    except click.exceptions.Exit as done:
        raise SystemExit(done.exit_code) from None
    except click.ClickException as mistake:
        # It quotes what was given, in which an address can have a password.
        text = mask_passwords(mistake.format_message())
        if isinstance(mistake, click.UsageError):
            click.UsageError(text, mistake.ctx).show()
        else:
            click.ClickException(text).show()
        raise SystemExit(mistake.exit_code) from None


def _refuse_plain_arguments(kind: type[Settings], arguments: Sequence[str]) -> None:
    """Refuse arguments of a server that takes none, and say where such a word belongs."""
    if arguments:
        hint = kind.PLAIN_HINT.format(argument=arguments[0])
        option = _option_like(kind, arguments[0])
        if option:
            hint = f"Did you mean {option}?"
        raise click.UsageError(f"{kind.COMMAND} takes options only, and '{arguments[0]}' is none. {hint}".strip())


def _refuse_options_without_dashes(kind: type[Settings], context: click.Context) -> None:
    """Refuse the name of an option without its dashes, which would be taken for a folder or file.

    What is there is meant: a folder may have such a name.
    """
    for name, field in kind.model_fields.items():
        is_typed = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if not is_typed or not _is_positional(field):
            continue
        words: Sequence[str] = context.params[name]
        if kind.OPTIONS_FIRST:
            # The others are for the servers that it names.
            words = words[:1]
        for word in words:
            option = _option_like(kind, word)
            if option and not os.path.lexists(word):
                path = f" A path of that name is ./{word}." if _takes_paths(kind) else ""
                raise click.UsageError(f"'{word}' has no dashes. Did you mean {option}?{path}")


def _takes_paths(kind: type[Settings]) -> bool:
    """Return whether plain arguments are folders or files."""
    return any(question.variable is None and question.kind != "string" for question in kind.INSTALL_QUESTIONS)


def _option_like(kind: type[Settings], word: str) -> str:
    """Return the option that has a word as its name; empty if none has."""
    name = word.lower().replace("-", "_")
    field = kind.model_fields.get(name)
    if name not in ("help", "help_all") and (field is None or _is_positional(field)):
        return ""
    return _flag(name)


def _is_positional(field: FieldInfo) -> bool:
    return any(isinstance(item, Positional) for item in field.metadata)


def _find_origins(context: click.Context, kind: type[Settings]) -> dict[str, str]:
    """Return the source of each setting's value, except of those that have their default."""
    origins: dict[str, str] = {}
    for name in context.params:
        origin = _origin(context, kind, name)
        if origin is not None:
            origins[name] = origin
    return origins


def _origin(context: click.Context, kind: type[Settings], name: str) -> str | None:
    """Return the source of the value of setting `name`; None for its default."""
    match context.get_parameter_source(name):
        case click.core.ParameterSource.COMMANDLINE:
            return "command line" if _is_positional(kind.model_fields[name]) else _flag(name)
        case click.core.ParameterSource.ENVIRONMENT:
            return variable(kind, name)
        case click.core.ParameterSource.DEFAULT_MAP:
            return file_variable(kind, name)
        case _:
            return None


class _Command(click.Command):
    """A command whose help has the server's own options first, then the common ones in their groups, then examples.

    `--help` shows the options that most people set, and `--help-all` every one.
    """

    def __init__(self, kind: type[Settings], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._kind = kind
        self._shows_all = False
        self.params.append(
            click.Option(
                [_HELP_ALL],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=self._print_all,
                help="Show every option and exit.",
            )
        )

    def _print_all(self, ctx: click.Context, _: click.Parameter, value: bool) -> None:
        if value:
            self._shows_all = True
            click.echo(self.get_help(ctx), color=ctx.color)
            ctx.exit()

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        pieces = self.collect_usage_pieces(ctx)
        formatter.write_usage(ctx.command_path, " ".join(pieces), _heading("Usage: "))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        lines = {option.name: option.get_help_record(ctx) for option in self.get_params(ctx)}
        help_option = self.get_help_option(ctx)
        if help_option is not None:
            # Versions of click give it names of their own.
            lines["help"] = help_option.get_help_record(ctx)
        for argument in self.params:
            if isinstance(argument, click.Argument) and argument.name:
                description = str(self._kind.model_fields[argument.name].description)
                lines[argument.name] = (argument.make_metavar(ctx), description)
        for heading, names in self._sections().items():
            records = [(_name(record[0]), record[1]) for name in names if (record := lines.get(name))]
            if not self._shows_all:
                records = _without_repeated_hosts(records)
            if records:
                with formatter.section(_heading(heading)):
                    formatter.write_dl(records)

    def _sections(self) -> dict[str, Sequence[str]]:
        """Return the names of the options to show, by their headings."""
        common = set[str]().union(*self._kind.GROUPS.values())
        own = [name for name in self._kind.model_fields if name not in common]
        if not self._shows_all:
            names = [*_own_frequent(self._kind, own), *Settings.FREQUENT, "help", "help_all"]
            return {"Options that most people set": names}
        groups = dict(self._kind.GROUPS)
        groups[_ACTIONS_HEADING] = (*groups[_ACTIONS_HEADING], "help", "help_all")
        return {f"Options of {self._kind.COMMAND}": own, **groups}

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section(_heading("Examples")):
            for example in self._kind.EXAMPLES:
                formatter.write_text(f"{self._kind.COMMAND} {example}".strip())
        formatter.write_paragraph()
        if not self._shows_all:
            formatter.write_text(f"Every other option: {self._kind.COMMAND} {_HELP_ALL}")
            return
        formatter.write_text(
            f"Every option can also be set as a variable such as {variable(self._kind, 'READ_ONLY')}=1. "
            f"A list is separated like PATH. {file_variable(self._kind, 'BUS')} names a file that holds the secret."
        )


_HELP_ALL = "--help-all"
_ACTIONS_HEADING = "Instead of serving"


def _without_repeated_hosts(records: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the lines of options with the names of hosts once, where they are named first."""
    shortened: list[tuple[str, str]] = []
    for name, text in records:
        beginning, hosts, _ = text.partition(_ONE_OF)
        is_repeated = hosts and any(_ONE_OF in other for _, other in shortened)
        shortened.append((name, beginning if is_repeated else text))
    return shortened


def _own_frequent(kind: type[Settings], own: Sequence[str]) -> Sequence[str]:
    if kind.FREQUENT == Settings.FREQUENT:
        return own
    return kind.FREQUENT


def _heading(text: str) -> str:
    return click.style(text, bold=True)


def _name(text: str) -> str:
    return click.style(text, fg="cyan")


def colour_choice() -> bool | None:
    """Return what a person has said about colours; None leaves them to terminals.

    See https://no-color.org and https://force-color.org.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return None


class _Words(click.types.StringParamType):
    def __init__(self, separator: str = os.pathsep) -> None:
        self._separator = separator

    def split_envvar_value(self, rv: str) -> list[str]:
        return [word for word in rv.split(self._separator) if word]


class _Choice(click.Choice[str]):
    """One of several words; of a wrong one, where they are many, the error names only those that are like it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        # `--uninstall --all` is what many type first.
        if ALL_HOSTS in self.choices and value == f"--{ALL_HOSTS}":
            value = ALL_HOSTS
        return super().convert(value, param, ctx)

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        similar = difflib.get_close_matches(str(value).lower(), self.choices, n=2)
        if not similar or len(self.choices) <= _MAX_SHOWN_CHOICES:
            return super().get_invalid_choice_message(value, ctx)
        names = " or ".join(repr(name) for name in similar)
        return f"there is no {value!r}. Did you mean {names}?"


@cache
def _parameters(kind: type[Settings]) -> Sequence[click.Parameter]:
    return [_parameter(kind, name, field) for name, field in kind.model_fields.items()]


def _parameter(kind: type[Settings], name: str, field: FieldInfo) -> click.Parameter:
    """Return the argument or option of the command line that sets a field."""
    common: dict[str, Any] = {"default": field.default, "envvar": variable(kind, name)}
    if _is_positional(field):
        metavar = f"[{placeholder(name)}]..."
        words = _Words(next(item.separator for item in field.metadata if isinstance(item, Positional)))
        return click.Argument([name], nargs=-1, type=words, metavar=metavar, **common)
    return click.Option([*_short_flags(field), _flag(name)], **common, **_option_details(field))


def _short_flags(field: FieldInfo) -> list[str]:
    return [item.flag for item in field.metadata if isinstance(item, Short)]


def _option_details(field: FieldInfo) -> dict[str, Any]:
    """Return what click needs to know of an option beyond its name: its help, and the values that it takes."""
    annotation = _without_none(field.annotation)
    details: dict[str, Any] = {"help": field.description}
    if annotation is bool:
        details["is_flag"] = True
    elif get_origin(annotation) is tuple:
        details |= {"multiple": True, "type": _Words()}
    elif get_origin(annotation) is Literal:
        choices = get_args(annotation)
        details["type"] = _Choice(choices)
        if len(choices) > _MAX_SHOWN_CHOICES:
            details |= {"metavar": "NAME", "help": f"{field.description}{_ONE_OF}{', '.join(choices)}."}
    elif annotation is int:
        details["type"] = _int_range(field)
    else:
        details["type"] = annotation
    return details


def _without_none(annotation: Any) -> Any:
    """Return what `X | None` holds besides None; other annotations as they are."""
    alternatives = [item for item in get_args(annotation) if item is not NoneType]
    if NoneType in get_args(annotation) and len(alternatives) == 1:
        return alternatives[0]
    return annotation


def _int_range(field: FieldInfo) -> click.IntRange:
    """Return the type of an integer between the bounds of a field, as far as it has any."""
    low: Any = next((item.ge for item in field.metadata if isinstance(item, Ge)), None)
    high: Any = next((item.le for item in field.metadata if isinstance(item, Le)), None)
    return click.IntRange(low, high)


def _usage_error(error: ValidationError) -> click.UsageError:
    """Return the first mistake that only the settings class finds, in click's form.

    The value is left out, because it may be a secret.
    """
    first = error.errors(include_url=False, include_input=False)[0]
    flag = _flag(str(first["loc"][0])) if first["loc"] else "options"
    return click.UsageError(f"Invalid value for '{flag}': {first['msg'].removeprefix('Value error, ')}.")


def _secret_settings(kind: type[Settings]) -> list[str]:
    return [name for name, field in kind.model_fields.items() if _is_secret(field)]


def _is_secret(field: FieldInfo) -> bool:
    return any(isinstance(item, Secret) for item in field.metadata)


def _secrets_in_files(kind: type[Settings]) -> dict[str, str | list[str]]:
    """Return the secrets whose variables name a file instead, as container engines hand them over."""
    secrets: dict[str, str | list[str]] = {}
    for name in _secret_settings(kind):
        path = os.environ.get(file_variable(kind, name), "").strip()
        if not path:
            continue
        text = _read_secret_file(path, file_variable(kind, name))
        is_list = get_origin(kind.model_fields[name].annotation) is tuple
        secrets[name] = text.split() if is_list else text
    return secrets


def _read_secret_file(path: str, variable_name: str) -> str:
    """Return the text of a file.

    Raises:
        UsageError: it can't be read; names the variable, not the path.
    """
    try:
        with open_text(to_absolute_path(path)) as file:
            return file.read().strip()
    except UnicodeDecodeError:
        reason = "it is not UTF-8"
    except OSError as error:
        reason = describe_os_error(error)
    raise click.UsageError(f"{variable_name} names a file that cannot be read: {reason}.")


def _refuse_unknown_variables(kind: type[Settings]) -> None:
    variables = {variable(kind, name) for name in kind.model_fields}
    variables |= {file_variable(kind, name) for name in _secret_settings(kind)}
    for name in os.environ:
        if name.upper().startswith(variable(kind, "")) and name.upper() not in variables:
            similar = difflib.get_close_matches(name.upper(), variables, n=1)
            hint = f" Did you mean {similar[0]}?" if similar else ""
            raise click.UsageError(f"No such variable: {name}.{hint}")


def _refuse_options_without_effect(settings: Settings) -> None:
    """Refuse options that these settings would ignore, so that nobody relies on them.

    A variable is not judged: it may be set for several servers, or in an image for every way to start it.

    Raises:
        UsageError: there is one.
    """
    typed = [name for name, origin in settings.origins.items() if origin.startswith("--")]
    actions = [name for name in _ACTIONS if name in typed]
    _refuse_two_actions(actions)
    for name in typed:
        needed = type(settings).NEEDS.get(name, ())
        if needed and not any(getattr(settings, other) for other in needed):
            raise click.UsageError(f"{_flag(name)} has no effect without {_flags(needed)}: add it, or leave this out.")
    if settings.dry_run and settings.purge:
        raise click.UsageError("--dry-run does not go with --purge: --uninstall alone names what --purge would remove.")
    if not any(action in _ACTIONS_WITHOUT_SETTINGS for action in actions):
        _refuse_ignored_addresses(settings, typed)


def _refuse_two_actions(actions: Sequence[str]) -> None:
    if len(actions) > 1 and not set(actions) <= _COMBINABLE_ACTIONS:
        first, second, *_ = actions
        raise click.UsageError(f"{_flag(first)} does not go with {_flag(second)}: do one after the other.")


def _refuse_ignored_addresses(settings: Settings, typed: Sequence[str]) -> None:
    for name in ONLY_OVER_HTTP:
        if name in typed and settings.transport == "stdio":
            raise click.UsageError(f"{_flag(name)} has no effect over stdio: add --transport http, or leave it out.")
    for name in _NOT_OVER_SSE:
        if name in typed and settings.transport == "sse":
            raise click.UsageError(f"{_flag(name)} has no effect over sse: use --transport http, or leave it out.")
    for name in ("host", "port"):
        if name in typed and settings.socket is not None:
            raise click.UsageError(f"{_flag(name)} has no effect beside --socket: leave out one of them.")


def _flags(names: Sequence[str]) -> str:
    return " or ".join(_flag(name) for name in names)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
