"""The one function of every log: text and JSON without what is called, or looks like, a secret."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from mcp_batteries.redaction.names import is_secret_name
from mcp_batteries.redaction.own import MASK, mask_own
from mcp_batteries.redaction.tokens import PRIVATE_KEY, token_pattern

__all__ = ["holds_assignment", "redact", "redact_json"]

_NAME = r"(?P<name>[A-Za-z_$@][\w.-]{0,127}+)"
_QUOTED = r"(?P<quote>\\*(?:\"\"\"|[\"'`]))(?P<quoted>(?:(?!(?P=quote))(?:\\.|[^\n])){0,4096})"
_SCHEME = r"(?i:bearer|basic|digest|token|api-?key|bot|negotiate|ntlm|oauth|dpop|ssws|sharedkey|aws4-hmac-sha256)"
_BARE = (
    r"(?P<bare>"
    rf"{_SCHEME}[ \t]+\S[^\r\n\"'`]*"
    # The lines of a block in YAML.
    r"|[|>][+-]?[0-9]?[ \t]*(?:\r?\n[ \t]+\S[^\r\n]*)+"
    r"|(?:[^\s\"'`;,<>]|[;,](?![\s]|$|[\w. -]{1,40}=)|[\"'`](?![\s,;)}\]]|$)|[<>](?![/\w]))+"
    r")"
)
_VALUE = rf"(?:{_QUOTED}|{_BARE})"
# A declared type before a value, as in `password: str | None = "..."`.
_ANNOTATION = r"[ \t]*:[ \t]*[A-Za-z][\w.\[\]]{0,60}(?:[ \t]*\|[ \t]*[\w.\[\]]{1,60}){0,4}[ \t]*=(?!=)[ \t]*"
_SEPARATOR = rf"(?P<separator>{_ANNOTATION}|[ \t]*(?:=>|:=|===?|!==?|=|:)[ \t]*)"

_WORD_CHARACTERS = 16
# These values are types, switches and words of languages.
_ORDINARY = frozenset(
    (
        "string", "str", "text", "bytes", "bool", "boolean", "int", "integer", "number", "float", "object", "any",
        "none", "null", "nil", "undefined", "void", "never", "unknown", "optional", "required", "true", "false", "yes",
        "no", "on", "off", "varchar", "char", "uuid", "enabled", "disabled", "empty", "hidden", "redacted", "masked",
        "basic", "bearer", "oauth", "oauth2", "apikey", "auto", "default", "env", "string?", "str?", "const", "static",
        "public", "private", "readonly", "await", "new", "self", "this", "return", "default:", "type", "in", "is",
    )
)  # fmt: skip
# A value that names where the secret is, or is masked already.
_REFERENCE = re.compile(
    r"\$\{[^}]*\}?|\$\(.*|\$[A-Z_][A-Z0-9_]*|%[A-Z_]+%|%\([\w.]+\)s|\{\{.*|\{[\w.]*\}|<[^<>]*>?|"
    r"[A-Za-z_][\w.]*\(.*|[A-Za-z_][\w.]*\[.*|[&*]?(?:self|this|os|process|settings|config|args|env|secrets|vars|var|"
    r"inputs|request|req|ctx|context|options|opts|params|data|props|state)(?:[.?!]+\w+)+\)?\.?|[*x•…._-]+\W*",
    re.DOTALL,
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_.\[\]|?]*")
_PROSE_WORD = re.compile(r"(?:[A-Za-z]?[a-z'-]+|[A-Z]{2,12})[.,:!?]?")
_ENVIRONMENT_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
_MIN_TYPED_DIGITS = 4
# A number of tokens has at most so many digits.
_MAX_COUNT_DIGITS = 6
_MAX_PROSE_CHARACTERS = 200
_MIN_QUERY_CHARACTERS = 8
_QUERY_NAMES = frozenset(("sig", "signature", "key", "code", "x-amz-signature", "x-amz-credential", "auth", "jwt"))


def redact(text: str) -> str:
    """Return `text` with `***` for every secret of this process, and for all that is called or looks like a secret."""
    text = mask_own(text)
    for step in _passes():
        text = step.apply(text)
    return _redact_assignments(text)


def redact_json(data: Any) -> Any:
    """Return the JSON value `data` with `***` for all that `redact` would take out, and for values of secret names."""
    match data:
        case str():
            return redact(data)
        case Mapping():
            return _redact_members(cast("Mapping[str, Any]", data))
        case list():
            return _redact_items(cast("list[Any]", data))
        case _:
            return data


def holds_assignment(text: str) -> bool:
    """Return whether `text` gives a secret to a name, as in `password=hunter2`."""
    return next(_secret_values(text), None) is not None


def _redact_members(members: Mapping[str, Any]) -> dict[str, Any]:
    redacted: dict[str, Any] = {}
    named = members.get("name", members.get("key"))
    value_is_secret = isinstance(named, str) and is_secret_name(named)
    for name, value in members.items():
        is_secret = is_secret_name(name) or (value_is_secret and name in ("value", "Value"))
        if is_secret:
            redacted[name] = _redact_secret(name, value)
        else:
            redacted[name] = redact_json(value)
    return redacted


def _redact_secret(name: str, value: Any) -> Any:
    """Return the value of the secret `name`, hidden if it can be one."""
    match value:
        case str():
            if _is_ordinary(value, quoted=True):
                return redact(value)
            return MASK
        case bool():
            return value
        case int():
            if len(str(abs(value))) < _MIN_TYPED_DIGITS or "oken" in name:
                return value
            return MASK
        case list():
            return [_redact_secret(name, item) for item in cast("list[Any]", value)]
        case _:
            return redact_json(value)


def _redact_items(items: list[Any]) -> list[Any]:
    redacted: list[Any] = []
    follows_flag = False
    for item in items:
        if follows_flag and isinstance(item, str):
            redacted.append(MASK)
        else:
            redacted.append(redact_json(item))
        follows_flag = isinstance(item, str) and _flag().fullmatch(item) is not None and is_secret_name(item)
    return redacted


def _is_ordinary(value: str, *, quoted: bool) -> bool:
    """Return whether `value` is no secret although it belongs to the name of one."""
    plain = value.strip(" \t()[]{};,?!")
    if not plain or plain.lower() in _ORDINARY or _REFERENCE.fullmatch(value.strip()) is not None:
        return True
    if _IDENTIFIER.fullmatch(plain) is None:
        return False
    # `password=password`, `"password": "Password"`, `token: AccessToken`, but not `password="MySecret"`.
    if quoted:
        return plain.lower() in ("password", "secret", "token")
    return any(is_secret_name(part) for part in plain.split("."))


@dataclass(frozen=True)
class _Pass:
    """One step of `redact`: a pattern, and what stands for its matches.

    Attributes:
        signs: parts of a text; the search takes longer than to see that a text has none of them. Empty if the pattern
            needs none.
    """

    pattern: re.Pattern[str]
    replacement: str | Callable[[re.Match[str]], str]
    signs: Sequence[str] = ()

    def apply(self, text: str) -> str:
        if self.signs and not any(sign in text for sign in self.signs):
            return text
        return self.pattern.sub(self.replacement, text)


@cache
def _passes() -> list[_Pass]:
    """Return the steps of `redact`, compiled at the first use because most starts log nothing."""
    private_key = re.compile(
        rf"{PRIVATE_KEY}(?:(?:(?!-----BEGIN).){{0,20000}}?-----END[ A-Z0-9]{{0,40}}PRIVATE KEY(?: BLOCK)?-----"
        r"|(?:(?:\s|\\+[nr])*(?:Proc-Type: [^\n]*|DEK-Info: [^\n]*|[A-Za-z0-9+/=]{16,}))*)",
        re.DOTALL,
    )
    address = re.compile(r"(\b[a-z][\w+.-]{0,30}://[^\s/:@\"'<>]{0,200}:)(?!\d{1,5}(?:[/?#\s]|$))[^\s\"'<>]{1,1000}@")
    address_token = re.compile(r"(\b[a-z][\w+.-]{0,30}://)[^\s/:@\"'<>]{16,500}(?=@)")
    # No English word has twenty letters; a shorter token has a digit or a sign.
    bearer = re.compile(r"(?i)\b(bearer[ \t]+)(?=[\w.~+/=-]*[0-9.+/]|\w{20})[\w.~+/=-]{8,}")
    cookie = re.compile(r"(?im)((?:^|[\"'\s])(?:set-)?cookie:[ \t]*)[^\r\n\"']+")
    query = re.compile(r"([?&;](?P<name>[\w.-]{1,60}+)=)(?P<value>[^\s&\"'<>#;]+)")
    element = re.compile(r"(<(?P<name>[A-Za-z_][\w:.-]{0,60}+)(?:\s[^<>]{0,300})?>)([^<>]+)(?=</)")
    statement = re.compile(r"(?i)(\b(?:password|identified\s+(?:with\s+\w+\s+)?by)\s+)'(?:[^'\n]|''){1,500}'")
    netrc = re.compile(r"(\blogin\s+\S+\s+password\s+)\S+")
    curl = re.compile(r"(\s(?:-u|--user)[ =][\"']?[^\s:\"']{1,200}:)[^\s\"']+")
    variable = re.compile(rf"((?:\bENV|\bARG|\bsetx)[ \t]+{_NAME}[ \t]+)(?:{_QUOTED}|(?P<bare>\S+))")
    flag = re.compile(rf"((?<![\w-])--?{_NAME}[ \t]+)(?!-)(?:{_QUOTED}|(?P<bare>\S+))")
    pair = re.compile(
        rf"\b(?i:name|key)[\"']?\s*[:=]\s*[\"']?{_NAME}[\"']?\s*,?\s*[\"']?(?i:value)[\"']?\s*[:=]\s*"
        rf"(?:{_QUOTED}|(?P<bare>[^\s\"'<>,]+))"
    )
    words = re.compile(rf"[\w~.%|+/=@:-]{{{_WORD_CHARACTERS},}}+")
    return [
        _Pass(private_key, MASK, ("PRIVATE KEY",)),
        _Pass(words, _redact_tokens),
        _Pass(address, rf"\1{MASK}@", ("://",)),
        _Pass(address_token, rf"\1{MASK}", ("://",)),
        _Pass(bearer, rf"\1{MASK}", ("earer", "EARER")),
        _Pass(cookie, rf"\1{MASK}", ("ookie:", "COOKIE:")),
        _Pass(query, _redact_query, ("=",)),
        _Pass(element, _redact_element, ("</",)),
        _Pass(statement, rf"\1'{MASK}'"),
        _Pass(netrc, rf"\1{MASK}", ("login",)),
        _Pass(curl, rf"\1{MASK}"),
        _Pass(variable, _redact_named),
        _Pass(flag, _redact_named, ("-",)),
        _Pass(pair, _redact_named, ("alue", "VALUE")),
    ]


@cache
def _assignment() -> re.Pattern[str]:
    """Return the pattern of a name and the sign behind it."""
    return re.compile(rf"(?<![\w.]){_NAME}\\*[\"'`]?\]?[?!]?{_SEPARATOR}")


@cache
def _value() -> re.Pattern[str]:
    return re.compile(_VALUE, re.MULTILINE)


@cache
def _flag() -> re.Pattern[str]:
    return re.compile(r"--?[A-Za-z][\w-]*")


def _redact_assignments(text: str) -> str:
    pieces: list[str] = []
    copied_to = 0
    for start, end in _secret_values(text):
        pieces += [text[copied_to:start], MASK]
        copied_to = end
    pieces.append(text[copied_to:])
    return "".join(pieces)


def _secret_values(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each value in `text` that belongs to the name of a secret."""
    position = 0
    while (match := _assignment().search(text, position)) is not None:
        # A value can be the name of the next, as in `$env:TOKEN = "..."`.
        position = match.end("name")
        if not is_secret_name(match["name"]):
            continue
        value = _value().match(text, match.end())
        if value is None or not _is_secret_value(match, value):
            continue
        yield value.span(_value_group(value))
        position = value.end()


def _value_group(value: re.Match[str]) -> str:
    """Return the name of the group that holds a value, which is quoted or bare."""
    if value["quoted"] is None:
        return "bare"
    return "quoted"


def _redact_named(match: re.Match[str]) -> str:
    """Hide the value of a name that stands before it without a sign between them."""
    group = _value_group(match)
    if not is_secret_name(match["name"]) or _is_ordinary(match[group], quoted=True):
        return match[0]
    start, end = match.span(group)
    return match[0][: start - match.start()] + MASK + match[0][end - match.start() :]


def _redact_tokens(match: re.Match[str]) -> str:
    """Hide what looks like a token in a run of characters without blanks."""
    return token_pattern().sub(MASK, match[0])


def _redact_query(match: re.Match[str]) -> str:
    """Hide the value of a parameter in the query of a URL."""
    name = match["name"]
    value = match["value"]
    is_secret = is_secret_name(name)
    if name.lower() in _QUERY_NAMES:
        is_secret = len(value) >= _MIN_QUERY_CHARACTERS
    if not is_secret or _REFERENCE.fullmatch(value):
        return match[0]
    return match[1] + MASK


def _redact_element(match: re.Match[str]) -> str:
    """Hide the content of an element of XML."""
    if not is_secret_name(match["name"]) or _is_ordinary(match[3], quoted=True):
        return match[0]
    return match[1] + MASK


def _is_secret_value(assignment: re.Match[str], value: re.Match[str]) -> bool:
    """Return whether `value`, which is assigned to the name of a secret, is one."""
    if value["quoted"] is not None:
        return not _is_ordinary(value["quoted"], quoted=True)
    name = assignment["name"]
    bare = value["bare"]
    if _is_working_folder(name, bare) or _is_token_count(name, bare):
        return False
    match assignment["separator"].strip():
        case "=" if _ENVIRONMENT_NAME.fullmatch(name) is not None:
            return bare.lower() not in _ORDINARY and _REFERENCE.fullmatch(bare) is None
        case ":":
            opens_structure = bare[0] in "{[("
            return not (opens_structure or _is_ordinary(bare, quoted=False) or _is_prose(value))
        case _:
            return not _is_ordinary(bare, quoted=False)


def _is_working_folder(name: str, value: str) -> bool:
    """Return whether a shell's variable holds a path: its name only looks like a password's."""
    return name in ("PWD", "OLDPWD") and ("/" in value or "\\" in value)


def _is_token_count(name: str, value: str) -> bool:
    """Return whether a value says how many tokens there are, as in `max_tokens: 4096`."""
    digits = value.strip("().,;}]")
    return "oken" in name and digits.isdigit() and len(digits) <= _MAX_COUNT_DIGITS


def _is_prose(value: re.Match[str]) -> bool:
    """Return whether `value` goes on as a sentence, as in `password: must have twelve characters`."""
    if _PROSE_WORD.fullmatch(value["bare"]) is None:
        return False
    following = value.string[value.end() : value.end() + _MAX_PROSE_CHARACTERS].partition("\n")[0]
    return _PROSE_WORD.match(following.lstrip(" \t,;.")) is not None
