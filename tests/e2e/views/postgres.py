"""A PostgreSQL of its own, filled by standard input's first line (JSON); prints its address. For postgres.mjs."""

import json
import sys

import psycopg

from mcp_postgres.engine.demo.cluster import Cluster

made = Cluster("CREATE DATABASE app")
url = f"postgresql://postgres:{made.password}@127.0.0.1:{made.wait_until_ready()}/app"
with psycopg.connect(url, autocommit=True) as connection:
    connection.execute(json.loads(sys.stdin.readline()).encode())
print(url, flush=True)
sys.stdin.read()
made.close()
