"""What the pages say of the size of our own tool lists is what the servers list today."""

from pathlib import Path

import pytest

from documents.figures import FOLDERS, current_page, page_of


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_page_says_how_large_the_tool_list_is(folder: str, tmp_path: Path) -> None:
    assert page_of(folder).read_text("utf-8") == current_page(folder, tmp_path), "run `just docs`"
