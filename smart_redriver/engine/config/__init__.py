"""Settings, and the places of the queues."""
