"""GitHub's addresses, and where it may redirect a request."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from mcp_batteries.errors import Refused, Unavailable, quote

__all__ = ["ApiUrl", "DownloadUrl", "api_url"]

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class DownloadUrl:
    """The address of a log or an artifact: the API itself, or a public https host."""

    url: str


@dataclass(frozen=True)
class ApiUrl:
    """The address of GitHub: `base` for REST, without a final slash."""

    base: str

    @property
    def graphql(self) -> str:
        """The address of GraphQL: on an Enterprise Server beside the version of REST, not below it."""
        return f"{self.base.removesuffix('/v3')}/graphql"

    @property
    def web(self) -> str:
        """The address where people log in, without a final slash."""
        parts = urlsplit(self.base)
        return f"{parts.scheme}://{parts.netloc.removeprefix('api.') if self.host != parts.hostname else parts.netloc}"

    @property
    def host(self) -> str:
        """The host as people know it, under which the gh program stores tokens."""
        name = urlsplit(self.base).hostname or ""
        return name.removeprefix("api.") if name == "api.github.com" or name.endswith(".ghe.com") else name

    def redirect(self, url: str, what: str) -> str:
        """The API's path that a redirect to `url` means.

        Raises:
            Refused: it leads to another host, to which the token is not sent, or out of the API.
        """
        base, target = urlsplit(self.base), urlsplit(url)
        if (target.scheme, target.netloc.lower()) != (base.scheme, base.netloc.lower()):
            raise Refused(f"GitHub redirects {what} to another host, where the token is not sent.")
        path = target.path[len(base.path) :]
        if not target.path.startswith(f"{base.path}/") or ".." in unquote(path).split("/"):
            raise Refused(f"GitHub redirects {what} to where there is no API.")
        return path

    def download(self, url: str, what: str) -> DownloadUrl:
        """The target of a redirected download.

        Raises:
            Refused: GitHub would not redirect anybody to the other host.
        """
        target, base = urlsplit(url), urlsplit(self.base)
        here = (target.scheme, target.netloc) == (base.scheme, base.netloc)
        if not here and (target.scheme != "https" or _is_internal(target.hostname or "")):
            raise Refused(f"GitHub redirects {what} to an address that is not followed.")
        return DownloadUrl(target.geturl())


def api_url(url: str) -> ApiUrl:
    """GitHub at the address `url` that the operator gave.

    Raises:
        Unavailable: it is not an address, or one to which nothing may be sent.
    """
    parts = urlsplit(url if "//" in url else f"https://{url}")
    host = (parts.hostname or "").lower()
    try:
        port = parts.port
    except ValueError:
        host, port = "", None
    if not host or parts.username or parts.query or parts.fragment or parts.scheme not in ("https", "http"):
        raise Unavailable(f"{quote(url)} is not an address of an API.", "Write it as https://host.")
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise Unavailable(f"{quote(url)} would send the token unencrypted.", "Write https://.")
    # Both addresses of an API are known from either.
    path = parts.path.rstrip("/").removesuffix("/graphql")
    if host in ("github.com", "www.github.com"):
        host = "api.github.com"
    elif host.endswith(".ghe.com") and not host.startswith("api."):
        host = f"api.{host}"
    elif path in ("", "/api") and not host.startswith("api.") and host not in _LOOPBACK:
        path = "/api/v3"
    shown = f"[{host}]" if ":" in host else host
    return ApiUrl(f"{parts.scheme}://{shown}{f':{port}' if port else ''}{path}")


def _is_internal(host: str) -> bool:
    """Whether `host` is a name or address of this machine or network only."""
    plain = host.strip("[]")
    return (
        "." not in plain or ":" in plain or plain.replace(".", "").isdigit() or plain.endswith((".local", ".internal"))
    )
