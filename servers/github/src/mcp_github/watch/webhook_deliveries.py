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
from dataclasses import dataclass, field
from typing import Any, cast

from mcp_batteries.errors import Problem, Unavailable
from mcp_batteries.redaction.own import add_secrets
from mcp_batteries.settings import open_text
from mcp_github.policy import Policy

__all__ = ["ChangeHint", "DeliveryFolder", "NewDeliveries"]

logger = logging.getLogger(__name__)

_SECRET_VARIABLE = "GITHUB_WEBHOOK_SECRET"
# GitHub sends at most 25 MB.
_MAX_DELIVERY_BYTES = 30_000_000


@dataclass(frozen=True)
class ChangeHint:
    """What to check, and since when.

    Attributes:
        received: seconds since the epoch; whoever checked later has seen the change already.
        paths: of the API, in lower case; one that ends in a slash means everything beneath it.
    """

    received: float
    paths: frozenset[str]

    def concerns(self, path: str) -> bool:
        """Return whether what is at `path` may have changed."""
        lower_path = path.lower()
        if lower_path in self.paths:
            return True
        return any(lower_path.startswith(hinted) for hinted in self.paths if hinted.endswith("/"))


@dataclass
class NewDeliveries:
    """What is in the folder since it was read before.

    Attributes:
        unfinished: the paths of files that somebody may still be writing.
    """

    hints: list[ChangeHint] = field(default_factory=list[ChangeHint])
    unfinished: list[str] = field(default_factory=list[str])


class DeliveryFolder:
    """The deliveries in `folder`.

    Args:
        secret_file: of the webhook's secret, instead of the variable GITHUB_WEBHOOK_SECRET.

    Raises:
        Unavailable: there is no secret, or no folder.
    """

    def __init__(self, policy: Policy, folder: str, secret_file: str | None) -> None:
        self.folder = folder
        self._policy = policy
        self._secret = _read_secret(secret_file)
        if not os.path.isdir(folder):
            raise Unavailable("The folder of `--inbox` does not exist.", "Create it, for its owner only.")
        self._states: dict[str, Hashable] = {}

    def fingerprint(self, path: str) -> Hashable:
        """Return what differs whenever something is put into the folder, or a file in it is written to."""
        if path == self.folder:
            return tuple(sorted(os.listdir(path)))
        status = os.stat(path)
        return status.st_mtime_ns, status.st_size

    def read_new(self) -> NewDeliveries:
        """Return the hints of new deliveries, and the files somebody may still be writing. Blocks."""
        states: dict[str, Hashable] = {}
        deliveries = NewDeliveries()
        with os.scandir(self.folder) as entries:
            for entry in entries:
                try:
                    if entry.name.endswith(".json") and entry.is_file(follow_symlinks=False):
                        self._read_entry(entry, states, deliveries)
                except FileNotFoundError:
                    continue
                except RecursionError:
                    logger.warning("The delivery %r is not used: it is nested too deeply.", entry.name)
                except (OSError, ValueError):
                    # On Windows nobody else may read what is being written.
                    states.pop(entry.name, None)
                    deliveries.unfinished.append(entry.path)
        self._states = states
        return deliveries

    def _read_entry(self, entry: os.DirEntry[str], states: dict[str, Hashable], deliveries: NewDeliveries) -> None:
        """Put down the state of a file, and the hints in it unless it was read in that state before."""
        status = entry.stat(follow_symlinks=False)
        states[entry.name] = (status.st_mtime_ns, status.st_size)
        if self._states.get(entry.name) == states[entry.name] or status.st_size > _MAX_DELIVERY_BYTES:
            return
        with open(entry.path, "rb") as file:
            content = file.read(_MAX_DELIVERY_BYTES)
        payload = self._verified_payload(entry.name, content)
        if payload is None:
            return
        paths = self._changed_paths(payload)
        if paths:
            deliveries.hints.append(ChangeHint(status.st_mtime, paths))

    def _verified_payload(self, name: str, content: bytes) -> dict[str, Any] | None:
        """Return what GitHub signed; None if the signature is wrong, or it is nothing that can be used.

        Raises:
            ValueError: the file is not JSON, perhaps because it is not whole yet.
        """
        delivery = json.loads(content)
        headers: Any = _member(delivery, "headers")
        body: Any = _member(delivery, "body")
        if not isinstance(headers, dict) or not isinstance(body, str):
            logger.warning("The delivery %r is not used: it has no headers or no body.", name)
            return None
        if not self._is_signed(cast("dict[str, Any]", headers), body):
            logger.warning("The delivery %r is not used: its signature is wrong.", name)
            return None
        try:
            payload: object = json.loads(body)
        except ValueError:
            return None
        if not isinstance(payload, dict):
            return None
        return cast("dict[str, Any]", payload)

    def _is_signed(self, headers: dict[str, Any], body: str) -> bool:
        """Return whether the signature among `headers` proves that `body` is GitHub's."""
        signature = ""
        for name, value in headers.items():
            if str(name).lower() == "x-hub-signature-256":
                signature = str(value)
        digest = hmac.new(self._secret, body.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
        return hmac.compare_digest(f"sha256={digest}".encode(), signature.encode("utf-8", "replace"))

    def _changed_paths(self, payload: dict[str, Any]) -> frozenset[str]:
        """Return what the delivery is about. From the body alone: the header that names the event is not signed."""
        try:
            repo_path = self._policy.repo(str(_member(payload, "repository", "full_name"))).path.lower()
        except Problem:
            return frozenset()
        paths = {repo_path}
        for kind in ("issue", "pull_request"):
            number = _member(payload, kind, "number")
            if isinstance(number, int):
                paths.add(f"{repo_path}/issues/{number}")
                paths.add(f"{repo_path}/pulls/{number}")
        for run_id in (_member(payload, "workflow_run", "id"), _member(payload, "workflow_job", "run_id")):
            if isinstance(run_id, int):
                paths.add(f"{repo_path}/actions/runs/{run_id}")
        if "release" in payload:
            paths.add(f"{repo_path}/releases/")
        if "ref" in payload:
            paths.add(f"{repo_path}/contents/")
            paths.add(f"{repo_path}/readme")
        return frozenset(paths)


def _member(payload: Any, *names: str) -> Any:
    """Return a member of a member of an object; None where there is none."""
    value: Any = payload
    for name in names:
        if not isinstance(value, dict):
            return None
        value = cast("dict[str, Any]", value).get(name)
    return value


def _read_secret(file_path: str | None) -> bytes:
    """Return the secret that the webhook signs with."""
    text = os.environ.get(_SECRET_VARIABLE, "")
    try:
        if file_path:
            with open_text(file_path) as file:
                text = file.read()
    except (OSError, UnicodeDecodeError):
        raise Unavailable("The file of `--inbox-secret-file` cannot be read.") from None
    secret = text.strip()
    if not secret:
        raise Unavailable(
            "`--inbox` needs the webhook's secret.",
            f"Set `{_SECRET_VARIABLE}`, or name its file with `--inbox-secret-file`.",
        )
    add_secrets([secret])
    return secret.encode()
