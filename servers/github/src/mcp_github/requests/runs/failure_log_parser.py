"""Finds out why a job failed: the first lines of its log that say so, whatever tool wrote them.

A tool's own message takes precedence over the shell's or runner's message about the tool, and the failure of a whole
machine over both, because everything fails after it. Lines of other steps than the one that failed count for nothing
but that: a step may be allowed to fail. A new kind of log is a new case in `tests/github_server/data/failures.txt`.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field

from mcp_github.safety.scrub import scrub_text

__all__ = ["MAX_CAUSE_BYTES", "FailedStep", "FailureLogParser"]

# Of a cause as it is shown.
MAX_CAUSE_BYTES = 1500

_MAX_LINE_CHARACTERS = 300
_PIECE_BYTES = 65_536
# Of a longer line that holds no hint, nothing is kept.
_MAX_CONTEXT_LINE_BYTES = 2000
_MAX_CONTEXT_LINES = 12
# A program that fails ends its step in so many lines; what it said long before the end was caught or tried again.
_MAX_LINES_TO_END = 8
_COLOUR_CODES = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]")
_TIMESTAMP = re.compile(rb"^(?:\xef\xbb\xbf)?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)[\d:.]*Z ?")
# What wraps the lines of another tool: docker's build, compose and kubectl, turbo and nx, `pr`-like prefixes.
_WRAPPER = re.compile(r"^(?:(?:#\d+ )?\d+\.\d{3} |[\w.-]+(?:-\d+)? +\| |##\[error\]|::error[^:]*::|Error: (?=Error: ))")
# Whatever a rule below can match has one of these; most lines have none, and are not looked at twice.
_HINT = re.compile(
    rb"(?i)error|fail|fatal|panic|exception|denied|killed|memory|not found|cannot|can't|could not|timed? ?out|"
    rb"exceed|cancel|abort|fault|no space|lost|undefined|unable|invalid|missing|assert|would reformat|\xe2\x97\x8f|"
    rb"\xe2\x9c\x96|\xc3\x97|(?:^|Z |m)E(?::|   )|ERR!|went wrong|exit code|shutdown|refused|unresolved|rejected|"
    rb"differ|traceback|data race|sanitizer|\.\w+:\d+:\d+|(?:^|Z |m) +\d+\) |YN\d{4}|\.mli?\", lines? "
)


@dataclass(frozen=True)
class _Rule:
    """Lines that tell of a failure.

    Attributes:
        rank: the lower, the nearer to the cause.
        after: how many lines behind it belong to it.
        before: how many lines in front of it belong to it.
    """

    rank: int
    pattern: re.Pattern[str]
    after: int = 4
    before: int = 0


def _rule(rank: int, pattern: str, after: int = 4, before: int = 0) -> _Rule:
    return _Rule(rank, re.compile(pattern), after, before)


_MACHINE, _TOOL, _STATED, _PROGRAM, _WEAK, _LAST = range(6)
_RULES = (
    # What ends the whole machine or job.
    _rule(_MACHINE, r"No space left on device|ENOSPC|Disk quota exceeded", 1),
    _rule(_MACHINE, r"heap out of memory|java\.lang\.OutOfMemoryError|MemoryError$|Cannot allocate memory", 1),
    _rule(_MACHINE, r"(?i)out of memory: killed process|oom-?kill|OOMKilled|memory cgroup out of memory", 1),
    _rule(_MACHINE, r"(?:^|\s)\d+ Killed\s|^Killed$|signal: 9, SIGKILL|exit(?:ed with)? (?:code|status):? 137", 2, 2),
    _rule(_MACHINE, r"exceeded the (?:maximum execution time|timeout of)|The action .* has timed out", 1, 2),
    _rule(_MACHINE, r"lost communication with the server|The runner has received a shutdown signal", 2),
    _rule(_MACHINE, r"^The (?:operation|job|run) was cancell?ed", 1, 3),
    # What a test runner, compiler or package manager says of its own failure.
    _rule(_TOOL, r"^E   +\S", 5, 3),
    _rule(_TOOL, r"^(?:FAILED|ERROR) \S+\.py(?:::\S+)?(?: - |$)", 3),
    _rule(_TOOL, r"^(?:FAIL|ERROR): \w+ \([\w.]+\)", 14),
    _rule(_TOOL, r"^\s*● (?!Console|Deprecation)\S.*", 14),
    _rule(_TOOL, r"^\s*(?:FAIL|⎯+ Failed)\s.*(?:>|\.(?:test|spec)\.)", 6),
    _rule(_TOOL, r"^\s*(?:✗|✖|×|✕)\s+\S.*", 4, 3),
    _rule(_TOOL, r"^(?:Failure|Error):$", 5),
    _rule(_TOOL, r"^\S.*\.{3,}Failed$", 6),
    _rule(_TOOL, r"^\S+ => \S+:\d+:\d+$", 4),
    _rule(_TOOL, r"^\s+\d+\) test .*\([\w.]+\)$", 8),
    _rule(_TOOL, r"^\s+\d+\) .*(?:›|\[\w+\] ›)", 10),
    _rule(_TOOL, r"^\s+\d+ failing$", 14),
    _rule(_TOOL, r"^\s*--- FAIL: ", 5, 3),
    _rule(_TOOL, r"^panic: |fatal error: all goroutines are asleep", 8),
    _rule(_TOOL, r"^(?:\./)?[\w./-]+\.go:\d+(?::\d+)?: (?!.*\bwarning\b).+", 3, 1),
    _rule(_TOOL, r"^error(?:\[[\w:-]+\])?: (?!aborting|could not compile|process didn't|test failed|Recipe)", 8),
    _rule(_TOOL, r"^thread '.*' (?:\(\d+\) )?panicked at", 5),
    _rule(_TOOL, r"\(\d+,\d+\): error \w+: |:\d+:\d+ - error \w+: |: error (?:TS|CS|FS|MSB|NU|NETSDK|LNK|C)\d+: ", 3),
    _rule(_TOOL, r"^\s+\d+:\d+\s+error\s+\S", 3, 3),
    _rule(_TOOL, r"^[^\s:][^:]*:\d+(?::\d+)?: (?:fatal )?[Ee]rror: ", 4, 1),
    _rule(_TOOL, r"^WARNING: DATA RACE$|(?:ERROR|WARNING): \w+Sanitizer: ", 10),
    _rule(_TOOL, r"undefined reference to|^ld: |cannot find -l|collect2: error", 2, 2),
    _rule(_TOOL, r"^CMake Error", 6),
    _rule(_TOOL, r'^File "[^"]+\.mli?", lines? \d+', 6),
    _rule(_TOOL, r"^ {4}error: \S|^ +error • ", 6),
    _rule(_TOOL, r"^fatal: \[[^\]]+\]: (?:FAILED|UNREACHABLE)!", 2, 2),
    _rule(_TOOL, r"^\S+\.pyi?:\d+(?::\d+)?:? (?:error:|[A-Z]{1,4}\d{2,4} )", 4),
    _rule(_TOOL, r"^\s+\S+\.pyi?:\d+:\d+ - error: ", 3),
    _rule(_TOOL, r"^(?:would reformat |\[warn\] \S+\.\w+$|error: cannot format)", 3),
    _rule(_TOOL, r"^E: (?!You can)", 3),
    _rule(_TOOL, r"^npm (?:ERR!|error) (?:code (?!ELIFECYCLE|1$)|ERESOLVE|404|notarget|Could not|Invalid)", 6),
    _rule(_TOOL, r"^(?:error (?!Command failed)\S| ?ERR_PNPM_\w)|YN\d{4}:.*(?:doesn't|could|can't|Couldn't|failed)", 4),
    _rule(_TOOL, r"^ERROR: (?:No matching|Could not (?:find|install|build)|Cannot install|Failed building)", 4, 2),
    _rule(_TOOL, r"^(?:\s*[×x] )?No solution found when resolving", 5),
    _rule(_TOOL, r"^\S+ > .* FAILED$", 5),
    _rule(_TOOL, r"^e: (?:file://)?\S+|^\S+\.(?:java|kt|scala|groovy):\d+: error: ", 4),
    _rule(_TOOL, r"^\[ERROR\] (?:\S+\.\w+:\[\d+,\d+\]|Tests run:.*(?:Failures|Errors): [1-9])", 4),
    _rule(_TOOL, r"^\[ERROR\] Failed to execute", 4, 4),
    _rule(_TOOL, r"^\* What went wrong:", 6),
    _rule(_TOOL, r"^\s+Failed \S.* \[(?:< )?\d+", 7),
    _rule(_TOOL, r"^ERROR: failed to (?:solve|build)(?!: process \")|^ERROR \[.*\d+/\d+\]", 4, 2),
    _rule(_TOOL, r"^(?:executor failed|failed to solve)", 4, 2),
    _rule(_TOOL, r"Error response from daemon: |manifest (?:for \S+ not found|unknown)", 2),
    _rule(_TOOL, r"^[│╷ ]*Error: (?!Process completed)\S", 6),
    _rule(_TOOL, r"^(?:Failures:|There (?:was|were) \d+ (?:failure|error)s?:)$", 10),
    _rule(_TOOL, r"^\s+\d+\) \S+.*\n?$(?<=Error)|^rspec \./", 6),
    _rule(_TOOL, r"^\s*(?:\*\* \()?(?:PHP )?(?:Fatal|Parse) error: |^\*\* \(\w+Error\)", 4),
    _rule(_TOOL, r"^Traceback \(most recent call last\):", 0),
    # What a program or a shell says.
    _rule(_PROGRAM, r"^(?:\w+\.)*\w*(?:Error|Exception)(?:\: | \[|$)", 4, 2),
    _rule(_PROGRAM, r"^(?:fatal|FATAL|Fatal)(?: error)?: ", 3),
    _rule(_PROGRAM, r"^(?:ERROR|CRITICAL)(?: +\[\w[\w.]*\]|:\w[\w.]*:) ?\S", 3, 1),
    _rule(_PROGRAM, r"^(?:denied|unauthorized): ", 2, 2),
    _rule(_PROGRAM, r"(?:command not found|No such file or directory|Permission denied|not recognized as)", 2, 1),
    _rule(_PROGRAM, r"Segmentation fault|core dumped|SIGSEGV|stack overflow", 2, 1),
    _rule(_PROGRAM, r"Could not resolve host|Connection refused|TLS handshake timeout", 2, 1),
    _rule(_PROGRAM, r"429 Too Many|50[234] (?:Bad|Serv|Gat)|^curl: \(\d+\)|^wget: |timed out after", 2, 1),
    _rule(_PROGRAM, r"! \[(?:remote )?rejected\]|Authentication failed|Repository not found", 3),
    # What only says that something failed: the command of an image says why itself.
    _rule(_WEAK, r"^ERROR: .*process \".*\" did not complete successfully: exit code", 2, 10),
    _rule(_WEAK, r"^(?:make(?:\[\d+\])?: \*\*\*|ninja: build stopped|FAILED: )", 2, 6),
    _rule(_WEAK, r"^(?:npm (?:ERR!|error)|ELIFECYCLE|error Command failed|BUILD FAILED|FAILURE: )", 3, 4),
    _rule(_WEAK, r"(?i)^(?:error|failed|failure)\b[:!]? \S", 3, 3),
    _rule(_LAST, r"^(?:Error: )?Process completed with exit code (?!0)", 0, 10),
)  # fmt: skip
_MACHINE_RULES = [rule for rule in _RULES if rule.rank == _MACHINE]
# What a step itself calls the error: an action that ends so, or a command that says so with `::error::`.
_STATED_RULE = _rule(_STATED, "", 2, 1)
_STATED_ERROR = re.compile(r"^##\[error\](?!Process completed with exit code)\S")
# One that is caught ends as one that is not; the last one of a step is likelier to have ended it.
_RAISED = _rule(_PROGRAM, "", 3, 3)
_STEP_HEADER = b"##[group]Run "
# Of these the last is kept: a service's complaints and what was tried again come before what ended the step.
_LAST_WINS = frozenset({_STATED, _PROGRAM})
# What counts only near the end of its step.
_ENDS_STEP = frozenset({_PROGRAM, _WEAK})
_TRACEBACK = "Traceback (most recent call last):"
_STEP_END = re.compile(r"Process completed with exit code [1-9]")
_HARMLESS = re.compile(
    r"(?i)^(?:warn(?:ing)?\b(?!: (?:data race|\w+sanitizer: ))|npm warn|##\[(?:warning|debug|group|command)\]|"
    r"\[(?:info|warn|debug)\]|(?:info|debug)\b:?)"
)
_SUCCESS = re.compile(r"(?:\bPASS(?:ED)?\b|\bok\b *$|✓|✔| \.\.\. ok$|\b0 (?:errors?|failed|failures)\b)")


@dataclass
class _Excerpt:
    """Lines of a log around one that tells of a failure.

    Attributes:
        first: the number of the first line.
        lines_to_come: how many of the following lines belong to it.
        paragraphs_since: how many lines came after it, without those that are indented.
    """

    rank: int
    first: int
    lines: list[str]
    lines_to_come: int
    paragraphs_since: int = 0


@dataclass(frozen=True)
class FailedStep:
    """When the step that failed was at work, as GitHub tells it: to the second, in UTC.

    Attributes:
        start: as `2026-01-31T08:00:00`.
        end: the same.
        earlier_count: how many steps before it began in the same second.
    """

    start: str
    end: str
    earlier_count: int = 0


@dataclass
class FailureLogParser:
    """Takes a log piece by piece and keeps what says why the job failed.

    Attributes:
        failed_step: whose lines count; all without it.
    """

    failed_step: FailedStep | None = None
    _headers_in_first_second: int = 0
    _has_step_begun: bool = False
    _unfinished_line: bytes = b""
    _line_count: int = 0
    _recent: deque[str] = field(default_factory=lambda: deque[str](maxlen=_MAX_CONTEXT_LINES))
    _best: _Excerpt | None = None
    _is_in_traceback: bool = False
    _has_step_ended: bool = False

    def feed(self, data: bytes) -> bool:
        """Take what comes next; return False, as there is never enough: what ends a machine is said last."""
        for start in range(0, len(data), _PIECE_BYTES):
            text = self._unfinished_line + data[start : start + _PIECE_BYTES]
            *lines, unfinished = text.split(b"\n")
            for line in lines:
                self._add_line(line)
            self._unfinished_line = unfinished[:_PIECE_BYTES]
        return False

    @property
    def is_weak(self) -> bool:
        """Whether the log says no more than that something failed."""
        return self._best is None or self._best.rank >= _WEAK

    def get_cause(self) -> str:
        """Return the cause, each line with its number; empty if nothing says one."""
        if self._unfinished_line:
            self._add_line(self._unfinished_line)
            self._unfinished_line = b""
        if self._best is None:
            return ""
        numbered_lines: list[str] = []
        size = 0
        excerpt = list(enumerate(self._best.lines, self._best.first))
        if self._best.rank == _LAST:
            # Of the end of a step the last lines count most.
            excerpt.reverse()
        for number, line in excerpt:
            if len(line) > _MAX_LINE_CHARACTERS:
                line = line[:_MAX_LINE_CHARACTERS] + "…"
            numbered_line = f"{number}: {line}"
            size += len(numbered_line.encode("utf-8", "replace")) + 1
            if size > MAX_CAUSE_BYTES:
                break
            numbered_lines.append(numbered_line)
        if self._best.rank == _LAST:
            numbered_lines.reverse()
        return "\n".join(numbered_lines)

    def _add_line(self, raw: bytes) -> None:
        self._line_count += 1
        if self.failed_step is not None and not self._is_of_failed_step(raw, self.failed_step):
            self._add_foreign_line(raw)
            return
        belongs_to_best = self._best is not None and self._best.lines_to_come > 0
        if not (belongs_to_best or self._is_in_traceback or _HINT.search(raw)):
            # Most of a log is of no interest; what precedes a failure may be.
            self._add_context(_clean(raw) if len(raw) < _MAX_CONTEXT_LINE_BYTES else "…")
            return
        line = _clean(raw)
        message = _WRAPPER.sub("", line)
        if belongs_to_best and self._best is not None:
            self._best.lines_to_come -= 1
            self._best.lines.append(line)
        if _STEP_END.match(message):
            self._forget_what_did_not_end_the_step()
        self._look_for_failure(line, message)
        if _STEP_END.match(message) and self._best is not None:
            self._has_step_ended = True
        self._add_context(line)

    def _add_context(self, line: str) -> None:
        """Remember a line that may precede a failure."""
        self._recent.append(line)
        if self._best is not None and line[:1] not in (" ", "\t", ""):
            self._best.paragraphs_since += 1

    def _forget_what_did_not_end_the_step(self) -> None:
        """Forget what a program said too long before the end of its step: the last lines say more."""
        best = self._best
        if self._has_step_ended or best is None or best.rank not in _ENDS_STEP:
            return
        if best.paragraphs_since > _MAX_LINES_TO_END:
            self._best = None

    def _is_of_failed_step(self, raw: bytes, step: FailedStep) -> bool:
        """Return whether a line was written while the failed step was at work."""
        match = _TIMESTAMP.match(raw)
        if match is None:
            return True
        second = match[1].decode()
        is_header = raw[match.end() :].startswith(_STEP_HEADER)
        self._has_step_begun = self._has_step_begun or second >= step.start
        if is_header and second == step.start and self._headers_in_first_second <= step.earlier_count:
            # What came before it in the same second was another step's.
            self._best = None
            self._has_step_ended = False
            self._headers_in_first_second += 1
        elif is_header and self._best is not None and self._best.rank == _STATED:
            # The step that said so has ended, as another begins.
            self._has_step_ended = True
        return step.start <= second <= step.end

    def _add_foreign_line(self, raw: bytes) -> None:
        """Take a line of another step: only the end of the whole machine is why this one failed."""
        self._is_in_traceback = False
        if self._best is not None:
            self._best.lines_to_come = 0
        if not self._has_step_begun or not _HINT.search(raw):
            return
        line = _clean(raw)
        message = _WRAPPER.sub("", line)
        for rule in _MACHINE_RULES:
            if rule.pattern.search(message):
                self._keep_if_better(rule, line)
                return

    def _look_for_failure(self, line: str, message: str) -> None:
        """Keep `line` if its `message`, which has no wrapper of another tool, tells of a failure."""
        if self._is_in_traceback:
            # Of a traceback only its end says what happened.
            if message[:1] not in (" ", ""):
                self._is_in_traceback = False
                self._keep_if_better(_RAISED, line)
        elif message.startswith(_TRACEBACK):
            self._is_in_traceback = True
        elif not _HARMLESS.match(message) and not _SUCCESS.search(message):
            self._apply_rules(line, message)

    def _apply_rules(self, line: str, message: str) -> None:
        rank_to_beat = self._rank_to_beat
        for rule in _RULES:
            if rule.rank >= rank_to_beat:
                return
            if rule.rank >= _STATED and _STATED_ERROR.match(line):
                break
            if rule.pattern.search(message):
                self._keep_if_better(rule, line)
                return
        if _STATED_ERROR.match(line):
            self._keep_if_better(_STATED_RULE, line)

    @property
    def _rank_to_beat(self) -> int:
        """The rank below which a line is nearer to the cause than what is kept."""
        if self._has_step_ended:
            # What a step says after it failed, or a later one, is not why; only what ends the machine is.
            return _TOOL
        if self._best is None:
            return _LAST + 1
        return self._best.rank + (self._best.rank in _LAST_WINS)

    def _keep_if_better(self, rule: _Rule, line: str) -> None:
        if self._best is not None:
            if rule.rank >= self._rank_to_beat:
                return
            if self._has_step_ended and rule.rank > _MACHINE:
                return
        context: list[str] = []
        if rule.before:
            context = list(self._recent)[-rule.before :]
        self._best = _Excerpt(rule.rank, self._line_count - len(context), [*context, line], rule.after)


def _clean(raw: bytes) -> str:
    """Return a line as a terminal would show it: without its timestamp, colours and what it overwrote."""
    text = _TIMESTAMP.sub(b"", _COLOUR_CODES.sub(b"", raw))
    visible = text.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace")
    scrubbed, _ = scrub_text(visible, code=True)
    return scrubbed
