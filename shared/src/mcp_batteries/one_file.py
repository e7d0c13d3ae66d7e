"""A server in one file: plain functions become tools, and what functions make of a file becomes a live resource.

It is the same server that rooms make, with the same options. A server that outgrows its file becomes rooms.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import os
import sys
import traceback
from collections.abc import Awaitable, Callable, Hashable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, ClassVar, NoReturn, TypeVar, cast, get_args, get_origin, get_type_hints, overload

import pydantic_core
from mcp.server.mcpserver import DEFAULT_RESOURCE_SECURITY
from mcp.shared.uri_template import UriTemplate
from mcp_types import TextResourceContents
from pydantic import Field

from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.errors import Invalid, NotFound, quote
from mcp_batteries.program import Demonstration, Program
from mcp_batteries.run import run
from mcp_batteries.server.assemble import Assembled, assemble
from mcp_batteries.server.calling.results import DataResult, TextResult
from mcp_batteries.server.declaration import decorators
from mcp_batteries.settings import Settings
from mcp_batteries.subscriptions.file_watcher import FileWatcher

__all__ = ["Server"]

F = TypeVar("F", bound=Callable[..., Any])


class Server:
    """A server whose tools and resources are the functions of the file that makes it.

    Args:
        name: the command is `mcp-<name>`, and a live resource's URI begins with `<name>://`.
        about: what it is for, a sentence; by default the first line of the file's docstring.

    Attributes:
        program: how it is started; what a `Case` of the contract takes.
    """

    def __init__(self, name: str, about: str = "") -> None:
        caller = cast("Any", inspect.currentframe()).f_back.f_globals
        file = os.path.abspath(caller["__file__"])
        self._name = name.removeprefix("mcp-")
        self._folder = os.path.dirname(file)
        self._offers: dict[str, Callable[..., Any]] = {}
        self._files: dict[str, str] = {}

        class Own(Settings):
            COMMAND: ClassVar[str] = f"mcp-{self._name}"
            FILE: ClassVar[str | None] = file
            EXAMPLES: ClassVar[tuple[str, ...]] = ("",)

        Own.__doc__ = about or (caller.get("__doc__") or "").strip().partition("\n")[0] or self._name
        self._settings = Own
        self.program = Program((sys.executable, file), lambda: Own, self._build, self._demonstration)

    def run(self) -> NoReturn:
        """Serve according to the command line; see `mcp_batteries.run`."""
        run(self.program)

    @overload
    def tool(self, function: F) -> F: ...
    @overload
    def tool(
        self, *, title: str = "", effect: decorators.Effect = "read", open_world: bool = False, seconds: float = 60.0
    ) -> Callable[[F], F]: ...
    def tool(
        self,
        function: F | None = None,
        *,
        title: str = "",
        effect: decorators.Effect = "read",
        open_world: bool = False,
        seconds: float = 60.0,
    ) -> F | Callable[[F], F]:
        """Offer a function as a tool; its name, docstring and annotations are what the model reads.

        A plain function runs on a thread of its own; an `async def` on the loop. What is returned and is not text
        becomes JSON. `Annotated[str, "Text to count."]` describes an argument.

        Args:
            title: for people; by default the function's name in words.
            effect, open_world, seconds: see `mcp_batteries.server.declaration.decorators.tool`.
        """

        def offer(function: F) -> F:
            mark = decorators.tool(title or _words(function), effect, open_world=open_world, seconds=seconds)
            self._offer(function, mark(_to_method(function)))
            return function

        return offer if function is None else offer(function)

    @overload
    def prompt(self, function: F) -> F: ...
    @overload
    def prompt(self, *, title: str = "") -> Callable[[F], F]: ...
    def prompt(self, function: F | None = None, *, title: str = "") -> F | Callable[[F], F]:
        """Offer a function as a prompt, which a person picks in the host; its arguments and its result are texts.

        Args:
            title: for people; by default the function's name in words.
        """

        def offer(function: F) -> F:
            mark = decorators.prompt(title or _words(function))
            self._offer(function, mark(_to_method(function)))
            return function

        return offer if function is None else offer(function)

    def live(self, path: str | Path, *, mime_type: str = "text/plain") -> Callable[[F], F]:
        """Offer what a function of a file's `Path` returns as a resource, announced whenever the file changes.

        Args:
            path: the file; a relative one is beside the server's own.
        """

        def offer(function: F) -> F:
            name = function.__name__
            file = os.path.join(self._folder, path)
            uri = f"{self._name}://{name}"

            async def read(room: object) -> TextResourceContents:
                try:
                    text = await _call_function(function, Path(file))
                except FileNotFoundError:
                    raise NotFound(f"There is no file {quote(os.path.basename(file))} now.") from None
                return TextResourceContents(uri=uri, text=text, mime_type=mime_type)

            read.__doc__ = function.__doc__
            self._files[uri] = file
            mark = decorators.resource(uri, name=name, title=_words(function), mime_type=mime_type)
            self._offer(function, mark(read))
            return function

        return offer

    def resource(self, template: str, *, title: str = "", mime_type: str = "text/plain") -> Callable[[F], F]:
        """Offer what a function makes of the variables of a URI: `notes/{name}` is read at `<server>://notes/today`.

        The function raises `FileNotFoundError` where there is nothing of that name. A variable that would lead out of a
        folder, such as `../notes` or `/etc`, names nothing either.

        Args:
            template: the rest of the URI, an RFC 6570 template; its variables are the function's arguments, as texts.
            title: for people; by default the function's name in words.
        """

        def offer(function: F) -> F:
            async def read(room: object, /, *, uri: str, **variables: str) -> TextResourceContents:
                try:
                    # A part of a URI may hold an encoded slash, and is one text all the same.
                    if DEFAULT_RESOURCE_SECURITY.validate(variables) is not None:
                        raise FileNotFoundError
                    text = await _call_function(function, **variables)
                # An empty variable, or one too few, names the folder of what the function reads.
                except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
                    raise NotFound(f"No resource has the URI {quote(uri)}.") from None
                return TextResourceContents(uri=uri, text=text, mime_type=mime_type)

            arguments = inspect.signature(function).parameters
            if "uri" in arguments:
                raise TypeError(f"`{template}` can't have {{uri}}, which is the whole URI: call the variable otherwise")
            if unknown := set(arguments) - set(UriTemplate.parse(template).variable_names):
                raise TypeError(f"`{template}` has no {{{min(unknown)}}}, which `{function.__name__}` wants")
            # The catalog passes those variables of a URI that a signature names.
            room = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
            named = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in (*arguments, "uri")]
            cast("Any", read).__signature__ = inspect.Signature([room, *named])
            read.__doc__ = function.__doc__
            mark = decorators.resource(
                f"{self._name}://{template}",
                name=function.__name__,
                title=title or _words(function),
                mime_type=mime_type,
            )
            self._offer(function, mark(read))
            return function

        return offer

    def _offer(self, function: Callable[..., Any], marked: Callable[..., Any]) -> None:
        if not function.__doc__:
            raise TypeError(f"`{function.__name__}` needs a docstring: it is what the model reads")
        if function.__name__ in self._offers:
            raise ValueError(f"`{function.__name__}` is offered twice")
        self._offers[function.__name__] = marked

    def _build(self, settings: Settings) -> Assembled:
        room = type("Room", (), self._offers)()
        command = self._settings.COMMAND
        try:
            released = version(command)
        except PackageNotFoundError:
            released = "0"
        return assemble(
            command,
            settings,
            rooms=[room],
            sources=[self._watcher()] if self._files else [],
            title=self._name.capitalize(),
            version=released,
            instructions=str(self._settings.__doc__),
        )

    def _watcher(self) -> FileWatcher:
        folders = sorted({os.path.dirname(file) for file in self._files.values()})
        watcher = FileWatcher(folders, self._files.get, _state)
        # What else is made in these folders changes no list here.
        watcher.list_keys = ()
        return watcher

    def _demonstration(self, settings: Settings) -> Demonstration:
        """For `--check`: setting a file's times to what they are changes nothing a person sees, and is noticed."""
        touched = (
            (uri, functools.partial(_touch, file)) for uri, file in self._files.items() if os.access(file, os.W_OK)
        )
        return next(touched, None)


def _touch(path: str) -> None:
    times = os.stat(path)
    # Windows has no time of that change itself: there the file gets the next time that NTFS can tell.
    step = 100 if sys.platform == "win32" else 0
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns + step))


def _state(path: str) -> Hashable:
    status = os.stat(path)
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size


def _words(function: Callable[..., Any]) -> str:
    return function.__name__.replace("_", " ").capitalize()


def _to_method(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Return `function` as a method that a room would have: asynchronous, every argument described by a `Field`."""

    @functools.wraps(function)
    async def call(self: object, /, **arguments: Any) -> Any:
        return await _call_function(function, **arguments)

    hints = get_type_hints(function, include_extras=True)
    returns: Any = hints.pop("return", None)
    is_result_class = inspect.isclass(returns) and issubclass(returns, (DataResult, TextResult))
    hints = {name: _with_field(hint) for name, hint in hints.items()}
    signature = inspect.signature(function)
    for item in signature.parameters.values():
        if item.kind not in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY):
            raise TypeError(f"`{function.__name__}` can't have `{item}`: models pass each argument by its name")
    room = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    parameters = [item.replace(annotation=hints.get(item.name, Any)) for item in signature.parameters.values()]
    result: Any = returns if is_result_class else str
    cast("Any", call).__signature__ = signature.replace(parameters=[room, *parameters], return_annotation=result)
    call.__annotations__ = {**hints, "return": result}
    return call


def _with_field(hint: Any) -> Any:
    if get_origin(hint) is not Annotated:
        return hint
    kind, *notes = get_args(hint)
    return Annotated[(kind, *(Field(description=note) if isinstance(note, str) else note for note in notes))]


async def _call_function(function: Callable[..., Any], *words: Any, **arguments: Any) -> Any:
    try:
        return await _run_function(function, *words, **arguments)
    except ValueError as error:
        if _is_of_the_author(error, function):
            raise Invalid(str(error)) from error
        raise


def _is_of_the_author(error: ValueError, function: Callable[..., Any]) -> bool:
    """Return whether the file of a function has raised an error itself; what a library says stays inside."""
    if type(error) is not ValueError or not str(error):
        return False
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    file = inspect.unwrap(function).__code__.co_filename
    if frame.f_code.co_filename != file:
        return False
    # A function that is written in C, such as `int`, leaves no frame of its own.
    return linecache.getline(file, line).lstrip().startswith("raise ")


async def _run_function(function: Callable[..., Any], *words: Any, **arguments: Any) -> Any:
    if inspect.iscoroutinefunction(function):
        value = await function(*words, **arguments)
    else:
        value = await run_in_thread(lambda stop: function(*words, **arguments), long=True)
    if isinstance(value, (str, DataResult, TextResult)):
        return value
    # JSON has no word for what is no number.
    return pydantic_core.to_json(value, inf_nan_mode="null").decode()
