"""Files of records (CSV, JSON, Parquet) as rows and as tables of a statement."""
