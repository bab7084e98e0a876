"""The construct `PostgresRedriver`, its alarms and dashboard, and its entry in a list of queues."""

# First, whoever asks first: `smart_redriver.cdk` makes the construct public, and so imports this room itself.
import smart_redriver.cdk  # noqa: F401
