"""The construct `KafkaRedriver`.

`smart_redriver.cdk` makes it public and therefore imports this package, so it must always be imported first.
"""

import smart_redriver.cdk  # noqa: F401
