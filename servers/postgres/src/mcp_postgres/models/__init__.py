"""The results of the tools as text: rows as lines of JSON arrays, all else as lines that a person can read too."""

from mcp_postgres.models.catalog import MAX_LISTED_FUNCTIONS, Catalog, CatalogEntry, RowCount
from mcp_postgres.models.listed_columns import ColumnValues
from mcp_postgres.models.listed_tables import FEW_TABLES, PROFILED_TABLES, find_lone_tables
from mcp_postgres.models.reports import Plan, Report
from mcp_postgres.models.table import TableInfo

__all__ = [
    "FEW_TABLES",
    "MAX_LISTED_FUNCTIONS",
    "PROFILED_TABLES",
    "Catalog",
    "CatalogEntry",
    "ColumnValues",
    "Plan",
    "Report",
    "RowCount",
    "TableInfo",
    "find_lone_tables",
]
