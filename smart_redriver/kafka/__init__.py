"""A consumer group's DLQ topic in Kafka as a DLQ, its source topics and a witness. Used by `redrive run --forever`.

    engine/    adapters: what records say, the log, letters that wait, deliveries, outcomes
    process    reads `kafka.toml` and runs passes until it is stopped
    sqlite     the state table as a file, where there is no DynamoDB

`smart_redriver.engine.config.backends` has the record. A position moves only past letters that are safe elsewhere.
"""
