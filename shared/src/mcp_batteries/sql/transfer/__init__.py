"""Rows from files and to files: where they may lie, CSV and JSON records, Parquet."""
