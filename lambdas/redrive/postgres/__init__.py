"""Adapters over psycopg: a worker queue in Postgres as a DLQ, a source and a witness. Imported where the origin is one.

`database` holds the connections and names what goes wrong, `statements` has every SQL text, `migration` those that make
the tables of ours. Each change is one statement, and so one transaction: it is done, or nothing is.
"""
