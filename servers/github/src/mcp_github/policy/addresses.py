"""GitHub's addresses, and where it may redirect a request."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

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
        netloc = parts.netloc
        if self.host != parts.hostname:
            netloc = netloc.removeprefix("api.")
        return f"{parts.scheme}://{netloc}"

    @property
    def host(self) -> str:
        """The host as people know it, under which the gh program stores tokens."""
        name = urlsplit(self.base).hostname or ""
        if name == "api.github.com" or name.endswith(".ghe.com"):
            return name.removeprefix("api.")
        return name

    def redirect(self, url: str, description: str) -> str:
        """Return the API's path that a redirect to `url` means.

        Raises:
            Refused: it leads to another host, to which the token is not sent, or out of the API.
        """
        base = urlsplit(self.base)
        target = urlsplit(url)
        if (target.scheme, target.netloc.lower()) != (base.scheme, base.netloc.lower()):
            raise Refused(f"GitHub redirects {description} to another host, where the token is not sent.")
        path = target.path[len(base.path) :]
        if not target.path.startswith(f"{base.path}/") or ".." in unquote(path).split("/"):
            raise Refused(f"GitHub redirects {description} to where there is no API.")
        return path

    def download(self, url: str, description: str) -> DownloadUrl:
        """Return the target of a redirected download.

        Raises:
            Refused: GitHub would not redirect anybody to the other host.
        """
        target = urlsplit(url)
        base = urlsplit(self.base)
        is_own_host = (target.scheme, target.netloc) == (base.scheme, base.netloc)
        if target.scheme == "https" and (target.hostname or "").endswith(f".{base.hostname}"):
            # An Enterprise Server can have its services on hosts below its own.
            is_own_host = True
        if not is_own_host and (target.scheme != "https" or _is_internal(target.hostname or "")):
            raise Refused(f"GitHub redirects {description} to an address that is not followed.")
        return DownloadUrl(target.geturl())


def api_url(url: str) -> ApiUrl:
    """Return GitHub at the address `url` that the operator gave.

    Raises:
        Unavailable: it is not an address, or one to which nothing may be sent.
    """
    parts = _split_address(url)
    host = (parts.hostname or "").lower()
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
    return ApiUrl(f"{parts.scheme}://{_netloc(host, parts.port)}{path}")


def _netloc(host: str, port: int | None) -> str:
    """Return a host as addresses have it: one of IPv6 in brackets, with the port if it is named."""
    netloc = host
    if ":" in host:
        netloc = f"[{host}]"
    if port:
        netloc = f"{netloc}:{port}"
    return netloc


def _split_address(url: str) -> SplitResult:
    """Return the parts of the address of an API, which has a host and nothing but a path behind it."""
    address = url
    if "//" not in url:
        address = f"https://{url}"
    parts = urlsplit(address)
    is_http = parts.scheme in ("https", "http")
    if not is_http or not parts.hostname or not _has_valid_port(parts):
        raise _no_api_address(url)
    if parts.username or parts.query or parts.fragment:
        raise _no_api_address(url)
    return parts


def _has_valid_port(parts: SplitResult) -> bool:
    try:
        _ = parts.port
    except ValueError:
        return False
    return True


def _no_api_address(url: str) -> Unavailable:
    return Unavailable(f"{quote(url)} is not an address of an API.", "Write it as https://host.")


def _is_internal(host: str) -> bool:
    """Return whether `host` is a name or address of this machine or network only."""
    name = host.strip("[]")
    if "." not in name or ":" in name or name.replace(".", "").isdigit():
        return True
    return name.endswith((".local", ".internal"))
