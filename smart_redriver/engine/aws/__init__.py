"""The adapters: boto3 in, values of the core out."""
