"""AWS in memory and in virtual time, as far as the re-driver calls it. The simulator, benches and tests run on it.

clock        the one clock, which is moved by whatever drives a world
sqs          FakeSqs: standard and FIFO queues, DLQs and native move tasks, as late and rough as the real ones
dynamodb     FakeDynamoDb: a state table with conditional writes and batches
cloudwatch   FakeCloudWatch: the AWS/SQS metrics of a FakeSqs, and AWS/Lambda's of a FakeLambda
functions    FakeLambda: asynchronous invocations with their retries, DLQ and on-failure destination
targets      FakeFirehose, FakeStates, FakeSns: where letters of other origins than SQS go back to
stand_in     AWS below botocore, for measuring: no queue, but a byte for each letter, and calls that take their time
faults       a bad wire in front of any of them: calls that die, are refused, half succeed or lose their answer
boto_client  what makes them look like boto3 clients: errors, exception classes, paginators

tests/contract compares their answers with moto, or with the named sources where moto is known to differ from AWS.
"""
