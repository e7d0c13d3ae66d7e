"""What PyGithub sends through: one request at a time, no redirect followed, no body without a limit.

PyGithub's own connection follows a 301 without its query, sleeps on a 202, reads any size and decodes bytes by guess.
This one hands back what GitHub said; what to do about it is decided in one place, `client`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import requests
from requests.adapters import HTTPAdapter

from mcp_batteries.errors import TooLarge
from mcp_github.engine.response import Reply

__all__ = ["Connection", "Early", "Stalled"]

_CHUNK = 65_536


class Early(Exception):
    """Raised with a reply that PyGithub would act on by itself: a redirect, a 202."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        super().__init__(reply.status)


class Stalled(Exception):
    """Raised when an answer drips in too slowly to end in time."""


class Connection:
    """In the shape of PyGithub's connection classes, for its `cnx` argument.

    Args:
        origin: scheme, host and port.
    """

    def __init__(self, origin: str, *, seconds: float) -> None:
        self._origin, self._seconds = origin, seconds
        self._session = requests.Session()
        # Anything but None keeps requests from sending what a .netrc holds for the host.
        self._session.auth = _as_it_is
        self._session.cookies.set_policy(_NoCookies())
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, HTTPAdapter(max_retries=0, pool_connections=1, pool_maxsize=1))
        self.max_bytes = 0
        self.check: Callable[[], None] = _nothing
        """Called between pieces of a body; raises when nobody waits for it any more."""
        self.last: Reply | None = None

    def request(self, verb: str, url: str, input: Any, headers: dict[str, str], stream: bool = False) -> None:  # noqa: A002
        self._prepared = (verb, self._origin + url, input, headers)

    def getresponse(self) -> _Response:
        verb, url, data, headers = self._prepared
        ends = time.monotonic() + self._seconds
        answer = self._session.request(
            verb, url, data=data, headers=headers, timeout=self._seconds, allow_redirects=False, stream=True
        )
        with answer:
            body = bytearray()
            for chunk in answer.iter_content(_CHUNK):
                body += chunk
                self.check()
                if len(body) > self.max_bytes:
                    raise TooLarge(
                        f"GitHub's answer has more than `{self.max_bytes:,}` bytes.", "Ask for less at once."
                    )
                if time.monotonic() > ends:
                    raise Stalled
            names = {name.lower(): value for name, value in answer.headers.items()}
            self.last = Reply(answer.status_code, names, bytes(body))
        if self.last.status == 202 or 300 <= self.last.status < 400:
            raise Early(self.last)
        return _Response(self.last)

    def close(self) -> None:
        self._session.close()


class _Response:
    def __init__(self, reply: Reply) -> None:
        self.status = reply.status
        self._headers = reply.headers

    def getheaders(self) -> Any:
        return self._headers.items()

    def read(self) -> str:
        # The bytes are in `Connection.last`.
        return ""


class _NoCookies(requests.cookies.cookielib.DefaultCookiePolicy):  # pyright: ignore
    def set_ok(self, cookie: Any, request: Any) -> bool:
        return False

    def return_ok(self, cookie: Any, request: Any) -> bool:
        return False


def _as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def _nothing() -> None:
    pass
