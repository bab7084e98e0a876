"""Letters of other origins than SQS, as AWS made them. Sources: what LocalStack's tests recorded on AWS in 2023 to 2025
(tests/aws/services of localstack/localstack: the tests are named below),
and AWS's own samples where nothing is recorded.
"""

import json
from typing import Any

from smart_redriver.engine.config.targets import Target
from smart_redriver.engine.messages.letter import Letter
from tests.unit.examples import a_letter

REGION = "eu-west-1:123456789012"
FUNCTION_ARN = f"arn:aws:lambda:{REGION}:function:orders"
QUEUE_ARN = f"arn:aws:sqs:{REGION}:orders"
MACHINE_ARN = f"arn:aws:states:{REGION}:stateMachine:orders"
TOPIC_ARN = f"arn:aws:sns:{REGION}:orders"
STREAM_ARN = f"arn:aws:firehose:{REGION}:deliverystream/orders"
SUBSCRIPTION = f"{TOPIC_ARN}:3f8d2c1e-0a9b-4c7d-8e6f-1a2b3c4d5e6f"
OTHER_SUBSCRIPTION = f"{TOPIC_ARN}:00000000-0a9b-4c7d-8e6f-1a2b3c4d5e6f"
RULE_ARN = f"arn:aws:events:{REGION}:rule/orders"
SCHEDULE_ARN = f"arn:aws:scheduler:{REGION}:schedule/default/orders"
REQUEST_ID = "9f3c9f0e-6a4b-4f6e-9d55-0d3b4a8f1c22"
WEB = "https://example.com/orders?key=1"

FUNCTION, QUEUE, MACHINE, TOPIC, STREAM, ENDPOINT = map(
    Target.parse, (FUNCTION_ARN, QUEUE_ARN, MACHINE_ARN, TOPIC_ARN, STREAM_ARN, WEB)
)


def subscribed(place: str, subscription: str = SUBSCRIPTION) -> Target:
    return Target.parse(f"{subscription}={place}")


def texts(**values: str) -> dict[str, dict[str, str]]:
    return {name: {"DataType": "String", "StringValue": value} for name, value in values.items()}


def sent(body: str, **attributes: str) -> Letter:
    """A letter that a service sent to the DLQ: SQS says nothing of where it came from."""
    return a_letter(body=body, attributes=texts(**attributes), source_arn=None)


def envelope(**changes: Any) -> dict[str, Any]:
    """TestSNSSubscriptionSQS.test_redrive_policy_sqs_queue_subscription, 23-08."""
    link = f"https://sns.eu-west-1.amazonaws.com/?Action=Unsubscribe&SubscriptionArn={SUBSCRIPTION}"
    fields = {
        "Type": "Notification",
        "MessageId": "d3f0b7f0-8f5d-5c2b-9b7a-ea1d9f5f0c11",
        "TopicArn": TOPIC_ARN,
        "Message": '{"order": 1}',
        "Timestamp": "2026-01-10T11:00:00.000Z",
        "SignatureVersion": "1",
        "Signature": "c2lnbmF0dXJl",
        "SigningCertURL": "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem",
        "UnsubscribeURL": link,
    }
    return fields | changes


def of_sns(**changes: Any) -> Letter:
    """No attributes, whatever emulators add."""
    return sent(json.dumps(envelope(**changes)))


def of_function(body: str = '{"order": 1}', **attributes: str) -> Letter:
    """A letter of Lambda's DLQ: TestLambdaDLQ.test_dead_letter_queue, 25-11. ErrorCode is a Number there."""
    told = {"RequestID": REQUEST_ID, "ErrorCode": "200", "ErrorMessage": "boom"} | attributes
    letter = sent(body, **told)
    letter.attributes["ErrorCode"]["DataType"] = "Number"  # type: ignore[index]
    return letter


def record(**changes: Any) -> dict[str, Any]:
    """TestLambdaDestinationSqs.test_assess_lambda_destination_invocation, 25-11."""
    context = {
        "requestId": REQUEST_ID,
        "functionArn": f"{FUNCTION_ARN}:$LATEST",
        "condition": "RetriesExhausted",
        "approximateInvokeCount": 3,
    }
    fields = {
        "version": "1.0",
        "timestamp": "2026-01-10T11:00:00.000Z",
        "requestContext": context | changes.pop("requestContext", {}),
        "requestPayload": {"order": 1},
        "responseContext": {
            "statusCode": 200,
            "executedVersion": "$LATEST",
            "functionError": "Unhandled",
        },
        "responsePayload": {
            "errorMessage": "boom",
            "errorType": "Exception",
            "requestId": REQUEST_ID,
        },
    }
    return fields | changes


def of_destination(**changes: Any) -> Letter:
    return sent(json.dumps(record(**changes)))


def of_rule(target_arn: str = FUNCTION_ARN, body: str = '{"source": "shop"}') -> Letter:
    """Amazon EventBridge User Guide, "Using dead-letter queues to process undelivered events"."""
    return sent(
        body,
        RULE_ARN=RULE_ARN,
        TARGET_ARN=target_arn,
        ERROR_CODE="NO_PERMISSIONS",
        ERROR_MESSAGE="not authorized",
    )


def of_schedule(
    target_arn: str = FUNCTION_ARN, body: str = '{"order": 1}', **attributes: str
) -> Letter:
    """EventBridge Scheduler User Guide, "Configuring a dead-letter queue", its sample: nine Strings."""
    told = {
        "SCHEDULE_ARN": SCHEDULE_ARN,
        "TARGET_ARN": target_arn,
        "EXECUTION_ID": "ad06616e51cdf74a",
        "SCHEDULED_TIME": "2026-01-10T11:00:00Z",
        "ERROR_CODE": "AWS.SimpleQueueService.NonExistentQueue",
        "ERROR_MESSAGE": "The specified queue does not exist",
        "EXHAUSTED_RETRY_CONDITION": "MaximumRetryAttempts",
        "RETRY_ATTEMPTS": "1",
        "IS_PAYLOAD_TRUNCATED": "false",
    }
    return sent(body, **told | attributes)


def universal(call: str, **parameters: Any) -> Letter:
    return of_schedule(f"arn:aws:scheduler:::aws-sdk:{call}", json.dumps(parameters))
