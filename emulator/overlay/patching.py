"""How to install a patch: replace an attribute, and pass the original to the replacement."""

from collections.abc import Callable
from types import ModuleType
from typing import Any


def wrap(owner: ModuleType | type, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate `replacement(original, *args)` to replace `owner.name`.

    A missing name raises an error at start, which is better than a patch that silently does nothing.
    """
    original = getattr(owner, name)

    def install(replacement: Callable[..., Any]) -> Callable[..., Any]:
        def patched(*args: Any, **kwargs: Any) -> Any:
            return replacement(original, *args, **kwargs)

        setattr(owner, name, patched)
        return patched

    return install
