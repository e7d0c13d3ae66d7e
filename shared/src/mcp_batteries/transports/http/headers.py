"""The headers of a request by name: each is looked up many times, and a list would be searched each time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Receive, Scope

__all__ = ["HeaderMap", "ParsedRequest"]


class HeaderMap(Headers):
    """Headers with lower-case names; of several with one name the first counts, as in Starlette."""

    def __init__(self, raw: Sequence[tuple[bytes, bytes]]) -> None:
        super().__init__(raw=list(raw))
        self._first = dict(reversed(raw))

    def __getitem__(self, key: str) -> str:
        return self._first[key.lower().encode("latin-1")].decode("latin-1")

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key.lower().encode("latin-1") in self._first

    def get(self, key: str, default: Any = None, /) -> Any:
        value = self._first.get(key.lower().encode("latin-1"))
        if value is None:
            return default
        return value.decode("latin-1")


class ParsedRequest(Request):
    """A request whose headers are already parsed."""

    def __init__(self, scope: Scope, receive: Receive, headers: Headers) -> None:
        super().__init__(scope, receive)
        self._parsed_headers = headers

    @property
    def headers(self) -> Headers:
        return self._parsed_headers
