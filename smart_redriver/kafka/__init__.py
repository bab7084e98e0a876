"""A consumer group's DLQ topic in Kafka as a DLQ, its source topics and their metrics.

    engine/    adapters: reading records, the log, waiting letters, deliveries, outcomes, live messages
    process    the configuration in `kafka.toml`, and passes until the process is stopped
    sqlite     the state table as a file, for use without DynamoDB
    oncall/    letters for people
    doctor     whether a cluster has what passes need
    cdk/       the construct `KafkaRedriver`

`smart_redriver.engine.config.backends` has the record. A position moves only past letters that are safe elsewhere.
"""
