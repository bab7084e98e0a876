"""The targets of letters that SQS did not dead-letter."""
