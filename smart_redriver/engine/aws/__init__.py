"""The adapters: boto3 in, the core's values out."""
