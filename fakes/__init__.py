"""SQS, DynamoDB and CloudWatch in memory, in virtual time."""
