"""The results of the tools: their shapes, and their text forms."""

from mcp_fs.models.listing import Compared, Entry, FileInfo, FolderPage, Tree
from mcp_fs.models.reading import FileSlices, Media, TextSlice, Whole
from mcp_fs.models.searching import FoundFiles, Match, Matches, Tallies
from mcp_fs.models.undoing import Steps, Undone, UndoStep
from mcp_fs.models.words import counted, is_one_line, one_line
from mcp_fs.models.writing import Edited, Moved, MovedAll, Replaced, Written, clipped_diff

__all__ = [
    "Compared",
    "Edited",
    "Entry",
    "FileInfo",
    "FileSlices",
    "FolderPage",
    "FoundFiles",
    "Match",
    "Matches",
    "Media",
    "Moved",
    "MovedAll",
    "Replaced",
    "Steps",
    "Tallies",
    "TextSlice",
    "Tree",
    "UndoStep",
    "Undone",
    "Whole",
    "Written",
    "clipped_diff",
    "counted",
    "is_one_line",
    "one_line",
]
