"""The Lambda function's entry: `redrive.handler.lambda_handler`. The engine is `smart_redriver.engine`."""
