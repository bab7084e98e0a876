"""The construct `PostgresRedriver`, its alarms and dashboard, and its entry in a list of queues."""

# Always first: `smart_redriver.cdk` makes the construct public, and therefore imports this package itself.
import smart_redriver.cdk  # noqa: F401
