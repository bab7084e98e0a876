"""A consumer group's DLQ topic in Kafka as a DLQ, its source topics and their metrics.

    engine/    adapters: what records say, the log, letters that wait, deliveries, outcomes, live messages
    process    what `kafka.toml` says, and passes by it until the process is stopped
    sqlite     the state table as a file, where there is no DynamoDB
    oncall/    letters as people have them
    doctor     whether a cluster is as passes need it
    cdk/       the construct `KafkaRedriver`

`smart_redriver.engine.config.backends` has the record. A position moves only past letters that are safe elsewhere.
"""
