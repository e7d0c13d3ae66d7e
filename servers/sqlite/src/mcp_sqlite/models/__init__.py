"""The results of the tools as text: rows as lines of JSON arrays, everything else as lines that a person can read too.

Each result is one text. Rows are sent once: a second, structured copy would double the largest answers, and hosts that
show only structured content fall back to the text where there is none.
"""

from mcp_sqlite.models.catalog import Catalog
from mcp_sqlite.models.reports import Backup, Check, Plan
from mcp_sqlite.models.table import TableInfo

__all__ = ["Backup", "Catalog", "Check", "Plan", "TableInfo"]
