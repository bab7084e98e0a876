"""Moves letters for a person: under the lease, at the person's pace, interruptible, and counted."""
