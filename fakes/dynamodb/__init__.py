"""One account's DynamoDB, as far as the re-driver, its command and the simulated rivals call it.

client        the calls
table         items by key, and what readers may see of them
expressions   conditions, filters and updates of whole attributes, with placeholders
values        typed values: which are legal, how they compare, what they weigh
"""

from fakes.dynamodb.client import FakeDynamoDb

__all__ = ["FakeDynamoDb"]
