"""How a patch is put in: replace an attribute, handing the original to the replacement."""

from collections.abc import Callable
from types import ModuleType
from typing import Any


def wrap(owner: ModuleType | type, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate `replacement(original, *args)` to stand in for `owner.name`.

    A missing name is an error at start: better than a patch that silently does nothing.
    """
    original = getattr(owner, name)

    def install(replacement: Callable[..., Any]) -> Callable[..., Any]:
        def patched(*args: Any, **kwargs: Any) -> Any:
            return replacement(original, *args, **kwargs)

        setattr(owner, name, patched)
        return patched

    return install
