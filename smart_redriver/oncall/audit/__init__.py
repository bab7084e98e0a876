"""The audit trail of changes by hand, and the account of where every letter is."""
