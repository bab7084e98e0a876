"""The checks of `redrive doctor`: one module for each side of a deployment, and findings with remedies."""
