"""The report of a test reaches the process that asked for it, whatever the test logged."""

from typing import Any

import execnet
import pytest

NOT_UNICODE = "caf\udce9.txt"


@pytest.mark.parametrize("kind", [pytest.TestReport, pytest.CollectReport])
def test_a_report_of_what_is_not_unicode_can_be_sent(
    kind: type[pytest.TestReport] | type[pytest.CollectReport], pytestconfig: pytest.Config
) -> None:
    details: dict[str, Any] = {"keywords": {NOT_UNICODE: 1}, "location": ("test.py", 1, NOT_UNICODE), "when": "call"}
    if kind is pytest.CollectReport:
        details = {"result": []}
    report: Any = kind("test.py", outcome="failed", longrepr=NOT_UNICODE, sections=[("log", NOT_UNICODE)], **details)
    sent = pytestconfig.hook.pytest_report_to_serializable(config=pytestconfig, report=report)
    received = execnet.loads(execnet.dumps(sent))
    read = pytestconfig.hook.pytest_report_from_serializable(config=pytestconfig, data=received)
    assert read.longrepr == r"caf\udce9.txt"
    assert read.sections == [("log", r"caf\udce9.txt")]
