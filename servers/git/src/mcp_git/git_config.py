"""The part of a repository's configuration that git gets: the keys of an allow-list, and nothing else.

Git reads our file instead of the repository's own, so it never sees a key that runs a program, includes a file or names
a folder, including keys of later versions of git.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mcp_batteries.errors import Refused, quote

__all__ = [
    "FALSE_VALUES",
    "HARDENED",
    "TRUE_VALUES",
    "Entry",
    "filter_remote_user_entries",
    "filter_repository_entries",
    "filter_user_entries",
    "find_promised_filter",
    "format_entries",
    "format_environment",
    "is_partial",
    "is_sparse_checkout",
    "list_disbelieved",
    "list_remotes",
    "parse_entries",
    "quote_value",
    "rewrite_url",
    "select_sparse_entries",
]

# Key and value; git writes the key's section and last part in lower case.
Entry = tuple[str, str]

_ALLOWED_PATTERNS = (
    r"core\.(?:repositoryformatversion|bare|filemode|ignorecase|precomposeunicode|symlinks|autocrlf|eol|safecrlf"
    r"|sparsecheckout|sparsecheckoutcone|logallrefupdates)",
    r"index\.sparse",
    r"extensions\.(?:objectformat|refstorage|compatobjectformat)",
    r"branch\.[^\n]+\.(?:remote|merge)",
    r"remote\.[^\n]+\.(?:url|pushurl|fetch)",
    r"(?:user|author|committer)\.(?:name|email)",
    r"receive\.(?:denydeletes|denynonfastforwards)",
)
_ALLOWED_KEYS = re.compile("|".join(_ALLOWED_PATTERNS))
_REMOTE_URL = re.compile(r"remote\.(.+)\.url", re.DOTALL)
_REWRITE_KEY = re.compile(r"url\.(.+)\.(insteadof|pushinsteadof)", re.DOTALL)

# Of the operator's own configuration, which no repository can write.
_USER_KEYS = re.compile(r"(?:user|author|committer)\.(?:name|email)|core\.(?:autocrlf|eol|excludesfile|attributesfile)")

# The same, where git talks to a remote: who the operator is there, and how their machine gets out.
_REMOTE_USER_KEYS = re.compile(r"(?:credential|http)\..+|ssh\.variant|user\.(?:name|email)", re.DOTALL)

# What only matters to programs that fetch, prune or make worktrees.
_HARMLESS_EXTENSIONS = frozenset({"noop", "partialclone", "preciousobjects", "relativeworktrees", "worktreeconfig"})

_SPARSE_KEYS = frozenset({"core.sparsecheckout", "core.sparsecheckoutcone", "index.sparse"})
# How configuration says yes and no, in small letters.
TRUE_VALUES = ("true", "yes", "on", "1")
FALSE_VALUES = ("false", "no", "off", "0", "")
HARDENED: Mapping[str, str] = {
    "core.hookspath": "/dev/null",
    "core.fsmonitor": "false",
    "core.pager": "cat",
    # Of a larger file git takes all into memory, several times to compare it.
    "core.bigfilethreshold": "64m",
    "core.quotepath": "false",
    "core.commitgraph": "true",
    "protocol.allow": "never",
    "http.followredirects": "false",
    "transfer.fsckobjects": "true",
    "transfer.bundleuri": "false",
    # A partial clone of a folder here stays one.
    "uploadpack.allowfilter": "true",
    "fetch.fsck.missingspacebeforedate": "warn",
    "fetch.fsck.badtimezone": "warn",
    "fetch.fsck.zeropaddedfilemode": "warn",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "submodule.recurse": "false",
    "fetch.recursesubmodules": "false",
    "diff.ignoresubmodules": "dirty",
    "status.submodulesummary": "false",
    "log.showsignature": "false",
    "commit.gpgsign": "false",
    "user.useconfigonly": "true",
    "rerere.enabled": "false",
    "i18n.logoutputencoding": "UTF-8",
    "color.ui": "false",
}


def filter_repository_entries(entries: Iterable[Entry]) -> list[Entry]:
    """Return those of a repository's `entries` that git may know.

    Raises:
        Refused: the repository has an unknown format.
    """
    allowed: list[Entry] = []
    for key, value in entries:
        section, _, name = key.partition(".")
        if section == "extensions" and name not in _HARMLESS_EXTENSIONS and not _ALLOWED_KEYS.fullmatch(key):
            raise Refused(f"This repository needs the extension {quote(name)}, which is not known here.")
        if _ALLOWED_KEYS.fullmatch(key) and "\0" not in value:
            allowed.append((key, value))
    return allowed


def list_remotes(entries: Iterable[Entry]) -> set[str]:
    """Return the names of the remotes that a configuration has."""
    matches = (_REMOTE_URL.fullmatch(key) for key, _ in entries)
    return {match[1] for match in matches if match}


def list_disbelieved(entries: Iterable[Entry]) -> list[str]:
    """Return the keys in a repository's `entries` that name files to read, which git is not told of, in backticks."""
    names: set[str] = set()
    for key, _ in entries:
        if key == "include.path" or key.startswith("includeif."):
            names.add(f"`{key.partition('.')[0]}`")
        elif key in ("core.excludesfile", "core.attributesfile"):
            names.add(f"`{key}`")
    return sorted(names)


def is_partial(entries: Iterable[Entry]) -> bool:
    """Whether a repository is a partial clone."""
    return any(key == "extensions.partialclone" or re.fullmatch(r"remote\..+\.promisor", key) for key, _ in entries)


def is_sparse_checkout(entries: Iterable[Entry]) -> bool:
    """Whether a work tree has only some of the files that are committed."""
    return dict(entries).get("core.sparsecheckout", "").lower() in TRUE_VALUES


def select_sparse_entries(entries: Iterable[Entry]) -> list[Entry]:
    """Return what says of a work tree that it has only some files, but not which."""
    return [entry for entry in entries if entry[0] in _SPARSE_KEYS]


def find_promised_filter(remote: str, entries: Mapping[str, str]) -> str:
    """Return the filter of what a partial clone lacks that this remote has; empty where it is not the remote for it."""
    is_promisor = entries.get(f"remote.{remote}.promisor", "").lower() in TRUE_VALUES
    if not is_promisor and entries.get("extensions.partialclone") != remote:
        return ""
    return entries.get(f"remote.{remote}.partialclonefilter", "blob:none")


def filter_user_entries(entries: Iterable[Entry]) -> list[Entry]:
    """Return those of the operator's `entries` that matter here."""
    return [(key, value) for key, value in entries if _USER_KEYS.fullmatch(key)]


def filter_remote_user_entries(entries: Iterable[Entry]) -> list[Entry]:
    """Return those of the operator's `entries` that matter when git talks to a remote, in order."""
    return [(key, value) for key, value in entries if _REMOTE_USER_KEYS.fullmatch(key)]


def rewrite_url(url: str, entries: Iterable[Entry], push: bool) -> str:
    """Return a remote's address rewritten by the operator's `url.*.insteadOf`, the longest prefix first, as in git."""
    rules = [rule for rule in _list_rewrite_rules(entries) if url.startswith(rule.prefix)]
    if not push:
        rules = [rule for rule in rules if not rule.is_for_push]
    if not rules:
        return url
    rule = max(rules)
    return rule.base + url[len(rule.prefix) :]


class _RewriteRule(NamedTuple):
    """A rule for addresses; the greatest goes first: those for pushes alone, then those with the longest prefix."""

    is_for_push: bool
    prefix_length: int
    prefix: str
    base: str


def _list_rewrite_rules(entries: Iterable[Entry]) -> list[_RewriteRule]:
    rules: list[_RewriteRule] = []
    for key, prefix in entries:
        match = _REWRITE_KEY.fullmatch(key)
        if match and prefix:
            rules.append(_RewriteRule(match[2] == "pushinsteadof", len(prefix), prefix, match[1]))
    return rules


def parse_entries(output: bytes) -> list[Entry]:
    """Parse what `git config --list -z` prints."""
    entries: list[Entry] = []
    for item in output.decode("utf-8", "surrogateescape").split("\0")[:-1]:
        key, line_end, value = item.partition("\n")
        # A key alone means yes.
        entries.append((key, value if line_end else "true"))
    return entries


def format_entries(entries: Sequence[Entry]) -> str:
    """Return the text of a configuration file."""
    lines: list[str] = []
    for key, value in entries:
        section, _, qualified_name = key.partition(".")
        subsection, _, name = qualified_name.rpartition(".")
        head = f'{section} "{_escaped(subsection)}"' if subsection else section
        lines.append(f'[{head}]\n\t{name} = "{_escaped(value)}"\n')
    return "".join(lines)


def format_environment(entries: Sequence[Entry]) -> dict[str, str]:
    """Return the variables by which a run of git gets these entries besides its files."""
    variables = {"GIT_CONFIG_COUNT": str(len(entries))}
    for number, (key, value) in enumerate(entries):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def quote_value(text: str) -> str:
    """`text` in quotes, as git reads it in a line of several."""
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
