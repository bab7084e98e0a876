"""What `redrive doctor` checks: one module for each side of a deployment, findings with remedies."""
