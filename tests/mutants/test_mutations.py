"""The mistakes are what they say, every policy is among the modules, and no reason outlives its survivor."""

import subprocess
import sys

import pytest

from mutants.modules import MODULES
from mutants.mutations import mutations
from mutants.run import ROOT, Job, key, known
from thinning import some

SOURCE = b'''"""Words."""
import logging
log = logging.getLogger()
LIMIT = 10

def spare(a: int | None, b: frozenset[str] = frozenset({"x", "y"})) -> bool:
    if a is None or a < 3:
        log.info("nothing")
        raise ValueError(f"{a + 1}")
    for one in b:
        if not one:
            break
    return a + 1 > LIMIT
'''


def test_each_mutation_is_another_program() -> None:
    found = {(each.place, each.line, str(each)) for each in mutations(SOURCE)}
    assert found == {
        ("spare", 6, "`'x'` → `nothing`"),
        ("spare", 6, "`'y'` → `nothing`"),
        ("spare", 7, "`a is None or a < 3` → `(False)`"),
        ("spare", 7, "`a is None or a < 3` → `(True)`"),
        ("spare", 7, "`a is None or a < 3` → `(a is None)`"),
        ("spare", 7, "`a is None or a < 3` → `(a < 3)`"),
        ("spare", 7, "`a is None` → `(a is not None)`"),
        ("spare", 7, "`a < 3` → `(a <= 3)`"),
        ("spare", 7, "`3` → `(4)`"),
        ("spare", 9, "`raise ValueError(f'{a + 1}')` → `pass`"),
        ("spare", 11, "`not one` → `(False)`"),
        ("spare", 11, "`not one` → `(True)`"),
        ("spare", 11, "`not one` → `(one)`"),
        ("spare", 12, "`break` → `continue`"),
        ("spare", 13, "`return a + 1 > LIMIT` → `return None`"),
        ("spare", 13, "`a + 1 > LIMIT` → `(a + 1 >= LIMIT)`"),
        ("spare", 13, "`a + 1` → `(a - 1)`"),
        ("spare", 13, "`1` → `(2)`"),
    }
    assert mutations(SOURCE)[0].apply(SOURCE).replace(b"({'x'})", b'{"x", "y"}') == SOURCE


@pytest.mark.share(8)
@pytest.mark.parametrize("module", some(MODULES, *list(MODULES)[::2]))
def test_every_mutation_compiles(module: str) -> None:
    source = (ROOT / module).read_bytes()
    for mutation in mutations(source)[::4]:
        compile(mutation.apply(source), module, "exec")
    assert all((ROOT / name).is_file() for name in MODULES[module])


def test_every_policy_is_mutated() -> None:
    room = "servers/*/src/*/policy"
    found = [path for pattern in (f"{room}.py", f"{room}/*.py") for path in ROOT.glob(pattern)]
    policies = {path.relative_to(ROOT).as_posix() for path in found}
    assert policies <= MODULES.keys()


def test_reasons_are_of_mutations_that_there_are() -> None:
    there = {key(Job(module, mutation)) for module in MODULES for mutation in mutations((ROOT / module).read_bytes())}
    assert known() <= there, known() - there


def test_a_name_of_nothing_is_refused() -> None:
    command = [sys.executable, str(ROOT / "tests/mutants/run.py"), "no-such-module"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "hub.py" in done.stderr
