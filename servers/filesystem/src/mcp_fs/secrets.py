"""Which names are secrets: keys and credentials that a model gets only if the operator allows it.

A list of names has holes: it prevents the usual accidents but is not a security boundary. The boundary is what the
operator serves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase, translate

__all__ = ["Secrets"]

# Patterns as fnmatch takes them, over names without regard to case; one that has a slash is for a
# folder and a name in it. What lies below a match is protected with it.
_SECRET_PATTERNS = """
    .env .env.* .env~ *.env .envrc
    *.pem *.key *.p12 *.pfx *.ppk *.jks *.keystore *.kdbx
    id_rsa id_dsa id_ecdsa id_ecdsa_sk id_ed25519 id_ed25519_sk
    .ssh .gnupg .password-store
    .npmrc .yarnrc.yml .pypirc .netrc _netrc .pgpass pgpass.conf .my.cnf .mylogin.cnf .htpasswd
    credentials.json service-account*.json *.tfstate *.tfstate.backup id_rsa.* id_ed25519.* *.key.bak *.pem.bak
    mcp-fs-undo
    .git-credentials .vault-token .s3cfg .boto .dockercfg kubeconfig *.kubeconfig
    .aws/sso .m2/settings.xml .config/rclone .aws/credentials .azure/* .docker/config.json .kube/config
    .config/gcloud .config/gh
    .cargo/credentials .cargo/credentials.toml .gem/credentials .terraform.d/credentials.tfrc.json
""".split()  # noqa: SIM905 - one can read this

_HARMLESS_PATTERNS = ".env.example .env.sample .env.template .env.dist *.pub".split()  # noqa: SIM905


def _compile_any(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(translate(pattern) for pattern in patterns))


_PATH_PATTERNS = [pattern for pattern in _SECRET_PATTERNS if "/" in pattern]
_SECRET_NAMES = _compile_any(pattern for pattern in _SECRET_PATTERNS if "/" not in pattern)
_SECRET_PATHS = _compile_any(_PATH_PATTERNS)
# Each of them is a folder and a name in it.
_SECRET_PATH_PARENTS = frozenset(pattern.partition("/")[0] for pattern in _PATH_PATTERNS)
_HARMLESS_NAMES = _compile_any(_HARMLESS_PATTERNS)
# Names that are remembered as no secrets and no folders of any.
_MAX_CACHED_NAMES = 8192


def _is_suspect(name: str) -> bool:
    # Almost every name ends here; a name below a folder of the path patterns is looked at more closely.
    name = name.casefold()
    return _SECRET_NAMES.match(name) is not None or name in _SECRET_PATH_PARENTS


class Secrets:
    """Decides whether a path below a served folder is protected.

    Args:
        allowed: patterns (fnmatch) of names, or of paths below the served folder, that are served after all.
    """

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._allowed = tuple(pattern.casefold() for pattern in allowed)
        self._harmless_names: set[str] = set()

    def is_secret(self, parts: tuple[str, ...]) -> bool:
        """Return whether the last of `parts`, or a folder on the way to it, is a secret."""
        if self._harmless_names.issuperset(parts):
            return False
        if len(self._harmless_names) > _MAX_CACHED_NAMES:
            self._harmless_names.clear()
        harmless_names = {part for part in parts if not _is_suspect(part)}
        self._harmless_names |= harmless_names
        return any(part not in harmless_names and self._is_secret_at(parts, index) for index, part in enumerate(parts))

    def _is_secret_at(self, parts: tuple[str, ...], index: int) -> bool:
        path = [part.casefold() for part in parts]
        if _HARMLESS_NAMES.match(path[-1]):
            return False
        if _SECRET_NAMES.match(path[index]):
            return not self._is_allowed(path, index)
        if not _SECRET_PATHS.match("/".join(path[index : index + 2])):
            return False
        return not self._is_allowed(path, index + 1)

    def _is_allowed(self, path: list[str], index: int) -> bool:
        spellings = (path[index], path[-1], "/".join(path[: index + 1]), "/".join(path))
        return any(_fits_any(spellings, pattern) for pattern in self._allowed)

    def is_secret_folder(self, parts: tuple[str, ...]) -> bool:
        """Return whether files below would no longer be known as secrets if the last of `parts` had another name."""
        if not parts:
            return False
        name = parts[-1].casefold()
        return name in _SECRET_PATH_PARENTS and not self._is_allowed([name, "any"], 1)


def _fits_any(spellings: Sequence[str], pattern: str) -> bool:
    return any(fnmatchcase(spelling, pattern) for spelling in spellings)
