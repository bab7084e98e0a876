"""A worker queue in Postgres as a DLQ, a source and its metrics. Imported only for this origin.

    engine/    adapters over psycopg; the only package here that is in a function's bundle
    oncall/    letters for people, and connections with a person's own credentials
    doctor/    whether a database has what passes need
    cdk/       the construct `PostgresRedriver`, alarms, dashboard, and its entry in a list of queues
    migration  the SQL that makes the re-driver's own tables and its role

`smart_redriver.engine.config.backends` has the record. Each change of letters is one statement, and therefore one
transaction: it is done completely or not at all.
"""
