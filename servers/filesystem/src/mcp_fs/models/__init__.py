"""The results of the tools: their shapes, and their text forms."""

from mcp_fs.models.formatting import escape_line_breaks, format_size, is_one_line, pluralize
from mcp_fs.models.listing import Comparison, Entry, FileInfo, FolderPage, Tree
from mcp_fs.models.reading import FileSlices, FileTexts, FullContents, Media, TextSlice
from mcp_fs.models.searching import FilePage, Match, MatchCounts, MatchedFile, Matches, MatchTotal
from mcp_fs.models.undoing import UndoResult, UndoStep, UndoStepPage
from mcp_fs.models.writing import (
    BatchResult,
    EditResult,
    MoveResult,
    ReplacedFile,
    ReplaceResult,
    WriteResult,
    clip_diff,
)

__all__ = [
    "BatchResult",
    "Comparison",
    "EditResult",
    "Entry",
    "FileInfo",
    "FilePage",
    "FileSlices",
    "FileTexts",
    "FolderPage",
    "FullContents",
    "Match",
    "MatchCounts",
    "MatchTotal",
    "MatchedFile",
    "Matches",
    "Media",
    "MoveResult",
    "ReplaceResult",
    "ReplacedFile",
    "TextSlice",
    "Tree",
    "UndoResult",
    "UndoStep",
    "UndoStepPage",
    "WriteResult",
    "clip_diff",
    "escape_line_breaks",
    "format_size",
    "is_one_line",
    "pluralize",
]
