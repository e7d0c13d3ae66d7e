"""Problems: their words, and that no encoder chokes on them."""

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError

from mcp_batteries.errors import Conflict, NotFound, Problem, Unavailable, describe_os_error, quote, well_formed


def test_a_problem_serves_tools_and_resources_alike() -> None:
    problem = NotFound("No `x`.", "List the folder.")
    assert isinstance(problem, ToolError) and isinstance(problem, ResourceError)
    assert isinstance(problem, ResourceNotFoundError)
    assert not isinstance(Conflict("It changed."), ResourceNotFoundError)
    assert str(problem) == "No `x`. List the folder."
    assert str(Problem("No.")) == "No."


def test_retry_after_is_told() -> None:
    assert Unavailable("Later.", retry_after=3).retry_after == 3


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "`plain`"),
        ("caf\udce9", "`caf�`"),
        ("two\nlines\0", "`two\\nlines\\0`"),
        ("x" * 200, f"`{'x' * 119}…`"),
        ("é\U0001f600", "`é\U0001f600`"),
    ],
)
def test_a_quote_is_one_short_encodable_line(text: str, shown: str) -> None:
    assert quote(text) == shown
    quote(text).encode()


@given(st.text(st.characters(exclude_categories=())))
def test_what_is_well_formed_can_be_written_and_what_could_be_stays(text: str) -> None:
    written = well_formed(text)
    assert written.encode().decode() == written
    assert written == text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def test_well_formed_keeps_pairs_and_replaces_the_rest() -> None:
    assert well_formed("\U0001f600 \ud83d \udce9") == "\U0001f600 � �"


class GermanError(OSError):
    """As Windows makes them: in the language of its user."""

    winerror = 2


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.ENOENT, "No such file or directory"), "No such file or directory"),
        (GermanError(errno.ENOENT, "Das System kann die angegebene Datei nicht finden"), "No such file or directory"),
        (GermanError(99_999, "Nur einmal verwendbar"), "Nur einmal verwendbar"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_the_system_s_reason_is_told_alike_in_every_language(error: OSError, told: str) -> None:
    assert describe_os_error(error) == told


class _Busy(Unavailable):
    def __init__(self, failure: str, fix: str, *, holder: str) -> None:
        super().__init__(failure, fix)
        self.holder = holder


def test_a_problem_in_other_words_keeps_what_is_known_of_it() -> None:
    busy = _Busy("It is busy.", "Wait.", holder="ann").reword("2: It is busy.", "Wait for ann.")
    assert isinstance(busy, _Busy) and busy.holder == "ann"
    assert (str(busy), busy.args) == ("2: It is busy. Wait for ann.", ("2: It is busy. Wait for ann.",))
    lost = NotFound("Gone.", status=404).reword("All are gone.", "")
    assert str(lost) == "All are gone." and lost.fields == {"kind": "not_found", "status": 404}
