"""A sample of the questions that `filesystem.differential` asks by the ten thousand."""

from __future__ import annotations

import pytest

from filesystem.differential import RG, differences
from filesystem.reading import on_linux


@on_linux
@pytest.mark.skipif(RG is None, reason="needs ripgrep")
def test_answers_are_those_of_rg_find_cat_and_git() -> None:
    assert differences(100) == []
