"""The part of the Kafka backend that passes use."""
