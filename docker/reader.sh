#!/bin/sh
# Run once, by the database's image, when the database is made: the role that mcp-postgres connects as.
set -eu
psql --no-psqlrc --set ON_ERROR_STOP=1 --set password="$READER_PASSWORD" --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
CREATE ROLE reader LOGIN PASSWORD :'password';
GRANT pg_read_all_data TO reader;
SQL
