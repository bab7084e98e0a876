"""The deployable stack: composes the construct, reads the context, acknowledges what the checks find."""
