"""Error codes of AWS, databases and web targets, sorted: the message is at fault, the fault passes, or the target refuses.

A code that is in none of the sets is a refusal.
"""

#: What is answered when the message itself is at fault, so that no later attempt can succeed.
CONTENT_FAULTS = frozenset(
    {
        "InvalidMessageContents",
        "InvalidParameterValue",
        "InvalidAttributeValue",
        "InvalidAttributeName",
        # SQS on an empty body; all else that it can't do without is always sent.
        "MissingParameter",
        # Of a call with one entry: calls with more are split first.
        "BatchRequestTooLong",
        # Lambda on an event that is no JSON, or too large.
        # https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html#API_Invoke_Errors
        "InvalidRequestContentException",
        "RequestTooLargeException",
        "RequestEntityTooLargeException",
        "SerializedRequestEntityTooLargeException",
        # Of Firehose none: a record can be too large only, which is seen before; its InvalidArgumentException is about
        # the stream.
        # https://docs.aws.amazon.com/firehose/latest/APIReference/API_PutRecord.html#API_PutRecord_Errors
        # Step Functions on the input, and on the name that a schedule gave: an execution of that name is there already.
        # https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html#API_StartExecution_Errors
        "InvalidExecutionInput",
        "InvalidName",
        "ExecutionAlreadyExists",
        "ValidationException",
        # SNS on a message. https://docs.aws.amazon.com/sns/latest/api/API_Publish.html#API_Publish_Errors
        "InvalidParameter",
        "ParameterValueInvalid",
        # Ours, on a letter that does not hold what its target needs, or is larger than it takes.
        "InvalidLetter",
        "LetterTooLarge",
    }
)

#: What passes by itself: AWS in trouble, a limit on calls, or no answer. Any other code but a content fault is a
#: refusal. Codes as botocore has them, less what stands before the last dot ("KMS.ThrottlingException").
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html#API_SendMessageBatch_Errors
#: https://docs.aws.amazon.com/kms/latest/developerguide/throttling.html
TRANSIENT_FAULTS = frozenset(
    {
        # SQS in trouble.
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "RequestTimeout",
        "RequestTimeoutException",
        "500",
        "502",
        "503",
        "504",
        # Too many calls: SQS, and KMS for a queue with a key of its own.
        "RequestThrottled",
        "RequestThrottledException",
        "Throttled",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "KmsThrottled",
        "TooManyRequestsException",
        "SlowDown",
        # No answer, or none about this entry.
        "NoAnswer",
        "ReadTimeoutError",
        "ConnectTimeoutError",
        "ConnectionClosedError",
        "ConnectionError",
        "EndpointConnectionError",
        "HTTPClientError",
        "ProxyConnectionError",
        "ResponseStreamingError",
        "SSLError",
        # A function that is being changed; its network is not ready; Lambda in trouble.
        "ServiceException",
        "ResourceConflictException",
        "ResourceNotReadyException",
        "EC2ThrottledException",
        "ENINotReadyException",
        # Limits of Step Functions, and KMS for SNS and Step Functions.
        "ExecutionLimitExceeded",
        "KMSThrottling",
        "KMSThrottlingException",
        "KmsThrottlingException",
        # Ours, on letters that were not given because the time for one delivery was over.
        "NotTried",
        # Databases: locked by others, too slow, starting or stopping, full for the moment.
        "LetterNotThere",
        "LockNotAvailable",
        "QueryCanceled",
        "DeadlockDetected",
        "SerializationFailure",
        "TooManyConnections",
        "OutOfMemory",
        "DiskFull",
        "ReadOnlySqlTransaction",
    }
)


#: What a target answers to whatever it is given: who asks may not, or it is gone, or can't be reached.
TARGET_REFUSALS = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AuthorizationError",
        "AuthorizationErrorException",
        "UnrecognizedClientException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "ExpiredToken",
        "ExpiredTokenException",
        "NoCredentialsError",
        "ResourceNotFoundException",
        "NotFound",
        "NotFoundException",
        "NonExistentQueue",
        "QueueDoesNotExist",
        "StateMachineDoesNotExist",
        "StateMachineDeleting",
        "InvalidArn",
        "InvalidTopic",
        "InvalidArgumentException",
        "InvalidSourceException",
        "InvalidKMSResourceException",
        "KmsAccessDeniedException",
        "KMSAccessDenied",
        "KMSAccessDeniedException",
        "KMSDisabled",
        "KMSDisabledException",
        "KMSInvalidState",
        "KMSInvalidStateException",
        "KMSNotFound",
        "KMSNotFoundException",
        "KMSOptInRequired",
        # SQS, by its own names, and by KMS's.
        "KmsAccessDenied",
        "KmsDisabled",
        "KmsInvalidKeyUsage",
        "KmsInvalidState",
        "KmsNotFound",
        "KmsOptInRequired",
        "DisabledException",
        "InvalidStateException",
        "OptInRequired",
        "InvalidAddress",
        "InvalidSecurity",
        "UnsupportedOperation",
        # Ours, of web targets.
        "HostNotFound",
        "AddressNotPublic",
        "NoConnection",
        "CertificateInvalid",
    }
)
