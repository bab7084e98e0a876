"""Letters on their way by a person's hand: under the lease, at their pace, interruptible, and counted."""
