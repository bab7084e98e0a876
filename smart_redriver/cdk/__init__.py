"""The CDK part that other apps import: the construct `SmartRedriver`, its settings, and its other arguments.

At synth, the function's own `smart_redriver.engine.config.settings` checks what it will accept at cold start.
"""

try:
    from smart_redriver.cdk.bundling import BundlingError
    from smart_redriver.cdk.monitoring_settings import Alarms, MonitoringSettings
    from smart_redriver.cdk.oncall_policies import OnCallPolicies
    from smart_redriver.cdk.props import Naming, Resources, Targets
    from smart_redriver.cdk.redriver import SmartRedriver
    from smart_redriver.cdk.safeguards import Safeguards
    from smart_redriver.cdk.topics import Topics
    from smart_redriver.engine.config.settings import Mode, Settings
    from smart_redriver.engine.config.targets import Origin
    from smart_redriver.engine.errors import SettingsError
    from smart_redriver.kafka.cdk.redriver import KafkaRedriver
    from smart_redriver.kafka.engine.place import KafkaTopics
    from smart_redriver.postgres.cdk.redriver import PostgresRedriver
    from smart_redriver.postgres.engine.place import JobsDatabase
except ModuleNotFoundError as missing:
    if missing.name not in ("aws_cdk", "aws_lambda_powertools", "constructs"):
        raise
    raise ModuleNotFoundError(
        f"smart_redriver.cdk needs {missing.name}: install smart-redriver[cdk], the package with this extra.",
        name=missing.name,
    ) from None

__all__ = [
    "Alarms",
    "BundlingError",
    "JobsDatabase",
    "KafkaRedriver",
    "KafkaTopics",
    "Mode",
    "MonitoringSettings",
    "Naming",
    "OnCallPolicies",
    "Origin",
    "PostgresRedriver",
    "Resources",
    "Safeguards",
    "Settings",
    "SettingsError",
    "SmartRedriver",
    "Targets",
    "Topics",
]
