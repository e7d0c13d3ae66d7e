"""Webhook deliveries, stored as files by whatever program receives them: signed hints of what to check, never content.

A file is `{"headers": {...}, "body": "..."}` with the body as GitHub sent it. Only what the signature proves is read,
and it only says which addresses to check soon: at worst a delivery causes one check of each.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, cast

from mcp_batteries.errors import Problem, Unavailable
from mcp_batteries.redaction.own import add_secrets
from mcp_batteries.settings import open_text
from mcp_github.policy import Policy

__all__ = ["Hint", "Inbox"]

logger = logging.getLogger(__name__)

_VARIABLE = "GITHUB_WEBHOOK_SECRET"
_MOST_BYTES = 30_000_000
"""GitHub sends at most 25 MB."""


@dataclass(frozen=True)
class Hint:
    """Where to look, and since when.

    Attributes:
        received: seconds since the epoch; who looked later knows it already.
        paths: of the API, in lower case; one that ends in a slash means everything beneath it.
    """

    received: float
    paths: frozenset[str]

    def concerns(self, path: str) -> bool:
        lower = path.lower()
        return lower in self.paths or any(lower.startswith(place) for place in self.paths if place.endswith("/"))


class Inbox:
    """The deliveries in `folder`.

    Args:
        secret_file: of the webhook's secret, instead of the variable GITHUB_WEBHOOK_SECRET.

    Raises:
        Unavailable: there is no secret, or no folder.
    """

    def __init__(self, policy: Policy, folder: str, secret_file: str | None) -> None:
        self.folder, self._policy = folder, policy
        self._secret = _secret(secret_file)
        if not os.path.isdir(folder):
            raise Unavailable("The folder of `--inbox` does not exist.", "Create it, for its owner only.")
        self._known: dict[str, Hashable] = {}

    def state(self, path: str) -> Hashable:
        """For the watcher: differs whenever something is put into the folder, or a file in it is written to."""
        if path != self.folder:
            found = os.stat(path)
            return found.st_mtime_ns, found.st_size
        return tuple(sorted(os.listdir(path)))

    def look(self) -> tuple[list[Hint], list[str]]:
        """The hints of new deliveries, and the paths of files somebody may still be writing. Blocks."""
        present: dict[str, Hashable] = {}
        hints: list[Hint] = []
        unfinished: list[str] = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                try:
                    if not entry.name.endswith(".json") or not entry.is_file(follow_symlinks=False):
                        continue
                    about = entry.stat(follow_symlinks=False)
                    present[entry.name] = (about.st_mtime_ns, about.st_size)
                    if self._known.get(entry.name) == present[entry.name] or about.st_size > _MOST_BYTES:
                        continue
                    with open(entry.path, "rb") as file:
                        hints += self._hints(entry.name, file.read(_MOST_BYTES), about.st_mtime)
                except FileNotFoundError:
                    continue
                except RecursionError:
                    logger.warning("The delivery %r is not used: it is nested too deeply.", entry.name)
                except (OSError, ValueError):  # On Windows nobody else may read what is being written.
                    present.pop(entry.name, None)
                    unfinished.append(entry.path)
        self._known = present
        return hints, unfinished

    def _hints(self, name: str, content: bytes, received: float) -> list[Hint]:
        delivery = json.loads(content)
        headers, body = _in(delivery, "headers"), _in(delivery, "body")
        if not isinstance(headers, dict) or not isinstance(body, str):
            logger.warning("The delivery %r is not used: it has no headers or no body.", name)
            return []
        signed = {str(key).lower(): str(value) for key, value in cast("dict[str, Any]", headers).items()}
        raw = body.encode("utf-8", "surrogatepass")
        right = "sha256=" + hmac.new(self._secret, raw, hashlib.sha256).hexdigest()
        given = signed.get("x-hub-signature-256", "").encode("utf-8", "replace")
        if not hmac.compare_digest(right.encode(), given):
            logger.warning("The delivery %r is not used: its signature is wrong.", name)
            return []
        try:
            payload = json.loads(body)
        except ValueError:
            return []
        paths = self._paths(cast("dict[str, Any]", payload)) if isinstance(payload, dict) else frozenset[str]()
        return [Hint(received, paths)] if paths else []

    def _paths(self, payload: dict[str, Any]) -> frozenset[str]:
        """What the delivery is about. From the body alone: the header that names the event is not signed."""
        try:
            top = self._policy.repo(str(_in(payload, "repository", "full_name"))).path.lower()
        except Problem:
            return frozenset()
        found = {top}
        for number in (_in(payload, "issue", "number"), _in(payload, "pull_request", "number")):
            if isinstance(number, int):
                found |= {f"{top}/issues/{number}", f"{top}/pulls/{number}"}
        for run in (_in(payload, "workflow_run", "id"), _in(payload, "workflow_job", "run_id")):
            if isinstance(run, int):
                found.add(f"{top}/actions/runs/{run}")
        if "release" in payload:
            found.add(f"{top}/releases/")
        if "ref" in payload:
            found |= {f"{top}/contents/", f"{top}/readme"}
        return frozenset(found)


def _in(payload: Any, *names: str) -> Any:
    value: Any = payload
    for name in names:
        value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
    return value


def _secret(file: str | None) -> bytes:
    text = os.environ.get(_VARIABLE, "")
    try:
        if file:
            with open_text(file) as opened:
                text = opened.read()
    except (OSError, UnicodeDecodeError):
        raise Unavailable("The file of `--inbox-secret-file` cannot be read.") from None
    if not text.strip():
        raise Unavailable(
            "`--inbox` needs the webhook's secret.", f"Set `{_VARIABLE}`, or name its file with `--inbox-secret-file`."
        )
    add_secrets([text.strip()])
    return text.strip().encode()
