"""AWS in memory and in virtual time, as far as the re-driver calls it: what simulator, bench and tests run on.

clock        the one clock; who drives a world moves it
sqs          FakeSqs: standard and FIFO queues, dead-letter queues and native move tasks,
late and rough as the real ones dynamodb     FakeDynamoDb: a state table with conditional writes and batches
cloudwatch   FakeCloudWatch: the AWS/SQS metrics of a FakeSqs, and AWS/Lambda's of a FakeLambda
functions    FakeLambda: asynchronous invocations with their retries, DLQ and on-failure destination
targets      FakeFirehose, FakeStates, FakeSns: what letters of other origins than SQS go back to
stand_in     AWS below botocore, for measuring: no queue, but a letter a byte, and each call takes its time
faults       a bad wire before any of them: calls that die, are refused, half succeed or lose their answer
boto_client  what makes them look like boto3 clients: errors, exception classes, paginators

tests/contract holds what they answer to moto, and to the named sources where moto is known to differ from AWS.
"""
