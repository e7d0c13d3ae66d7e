"""What tools of both SQL servers take, with the same descriptions, and the parser of each."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from mcp_batteries.server.declaration.decorators import rename_arguments
from mcp_batteries.server.declaration.fields import in_header
from mcp_batteries.server.declaration.trusted import FreeText, trusted
from mcp_batteries.sql.policy import AnyPolicy, Database, FileEncoding, NewFile, ServedFile, parse_encoding

__all__ = [
    "DATABASE",
    "MAX_SECONDS",
    "NEW_FILE",
    "OTHER_RELATION",
    "RENAMED_SQL_ARGUMENTS",
    "Encoding",
    "MaxCell",
    "NewRowFile",
    "Nulls",
    "RowFile",
    "Sample",
    "SearchWords",
    "ServedDb",
    "ServedDbs",
]

# This is above every time limit that an operator can set, and that limit is what really ends a statement.
MAX_SECONDS = 6100.0

# Other servers call these arguments so.
RENAMED_SQL_ARGUMENTS = rename_arguments(query="sql", statement="sql", params="parameters")

DATABASE = Field(description="Which, if several are served.", json_schema_extra=in_header("Database"))
NEW_FILE = Field(description="Plain name, no path.")
OTHER_RELATION = Field(
    description="Instead, count the rows that differ from this table's or view's in the columns of both, and list 20 "
    "or `sample`."
)

# Left out, the first is the only served one, the second are all: `default("")`.
ServedDb = Annotated[Database, trusted(AnyPolicy.database), DATABASE]
ServedDbs = Annotated[tuple[Database, ...], trusted(AnyPolicy.served_databases), DATABASE]
NewRowFile = Annotated[NewFile, trusted(AnyPolicy.new_row_file), NEW_FILE]
RowFile = Annotated[ServedFile, trusted(AnyPolicy.row_file), Field(description="Path in the folder.")]
Encoding = Annotated[
    FileEncoding | None,
    trusted(parse_encoding),
    Field(description="Of a file that is not UTF-8, such as cp1252."),
]
Nulls = Annotated[
    list[FreeText] | None, Field(max_length=50, description="Words that mean NULL in a CSV file: N/A, -.")
]
MaxCell = Annotated[int, Field(ge=1, le=1_000_000, description="Longest cell shown whole.")]
Sample = Annotated[int | None, Field(ge=0, le=20, description="Rows to show.")]
SearchWords = Annotated[FreeText, Field(min_length=1, max_length=1000, description="What to look for.")]
