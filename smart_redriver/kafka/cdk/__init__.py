"""The construct `KafkaRedriver`.

`smart_redriver.cdk` makes it public and so imports this room, wherever one begins: it is imported first.
"""

import smart_redriver.cdk  # noqa: F401
