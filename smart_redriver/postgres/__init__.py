"""A worker queue in Postgres as a DLQ, a source and its metrics. Imported where the origin is one.

    engine/    adapters over psycopg; the only room in a function's bundle
    oncall/    letters as people have them, and connections with a person's own credentials
    doctor/    whether a database is as passes need it
    cdk/       the construct `PostgresRedriver`, alarms, dashboard, and its entry in a list of queues
    migration  the SQL that makes the re-driver's own tables and its role

`smart_redriver.engine.config.backends` has the record. Each change of letters is one statement, and so one transaction:
it is done, or nothing is.
"""
