"""An error in a report: its class, its cause, the first line of its message, and where it happened.

It contains no body, no secret of a known shape or name, and no card number. Errors with one cause have one name,
without numbers, ids, addresses, quoted values and line numbers.
"""

from __future__ import annotations

import linecache
import re
import traceback
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

from smart_redriver.consumer.errors import grouped_in
from smart_redriver.consumer.scrub import NOT_OWN, VARIABLE, without_body, without_secrets

#: The most characters of a cause. The re-driver keeps some causes for each batch that is out.
MAX_CAUSE = 100
_MAX_PART = 40

#: Text that runtimes write around a function's name.
_AROUND = re.compile(
    r"^(?:async|new) |^Object\.|<[a-z]+>\.?| \[as .*\]$|^lambda\$|\$[0-9]+$|^(?:global|module)\."
)


@dataclass(frozen=True, slots=True)
class Frame:
    """One call. `file` is its path or, in Java, the class."""

    file: str
    function: str


def cause_of(
    error_class: str, first_line: str, frames: Iterable[Frame], language: str = "python"
) -> str:
    """The name of a cause, with at most 100 characters. `frames` begins with the one that raised the error."""
    name = re.split(r"[.$:]", error_class)[-1][:_MAX_PART] or "Error"
    place = next((_place(one, language) for one in frames if _is_own(one, language)), "")
    where = f"{name} in {place}" if place else name
    what = normalised(first_line)
    return (f"{where}: {what}" if what else where)[:MAX_CAUSE].rstrip()


def normalised(text: str) -> str:
    """`text` without the parts that differ from one message to the next."""
    for pattern, other in VARIABLE:
        text = pattern.sub(other, text)
    return text.strip()


def _is_own(frame: Frame, language: str) -> bool:
    return not NOT_OWN[language].search(frame.file)


def _place(frame: Frame, language: str) -> str:
    """File and function, such as `billing.charge`. A Java class has no package here."""
    file = frame.file.replace("\\", "/").rpartition("/")[2]
    if language == "java":
        stem = re.sub(r"\$.*$", "", file.rpartition(".")[2])
    else:
        stem = file.partition("?")[0].partition(".")[0]
    function = _AROUND.sub("", _AROUND.sub("", frame.function)).strip()
    return ".".join(part for part in (stem, function) if part)[-_MAX_PART:]


#: Limits in the schema of reports: characters or, for a traceback, bytes.
MAX_ERROR_CLASS = 200
MAX_FIRST_LINE = 300
MAX_TRACEBACK = 4096

#: How many characters of a message or a line of code to look at: enough for a secret that begins in the first line.
_LOOKED_AT = 2_000
#: How many frames nearest to the error, and how many errors behind it: more costs time and would be cut off.
_FRAMES = 20
_CAUSES = 5
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One error, safe to report. `first_line` and `traceback` are empty if not asked for."""

    error_class: str
    first_line: str
    cause: str
    traceback: str


def failure_of(
    error: BaseException,
    body: str,
    attributes: Collection[str] = (),
    *,
    is_traced: bool = True,
    has_texts: bool = True,
) -> Failure:
    """Describe `error`, raised during work on a message with this `body`.

    Args:
        attributes: the values of the message's attributes.
        is_traced: whether to include the traceback. Without it, the call takes a fifth of the time.
        has_texts: whether to report more than the names of classes, files and functions.

    """
    first = _first(error)
    error_class = class_of(first)
    first_line = first_line_of(_message_of(first), body, attributes) if has_texts else ""
    return Failure(
        error_class=error_class,
        first_line=first_line,
        cause=cause_of(error_class, first_line, _frames(first)),
        traceback=traceback_of(error, body, attributes) if is_traced and has_texts else "",
    )


def unreadable(error: BaseException) -> Failure:
    """Describe an error that raises errors itself where its attributes are read."""
    name = class_of(error)
    return Failure(error_class=name, first_line="", cause=cause_of(name, "", ()), traceback="")


def first_line_of(message: str, body: str, attributes: Collection[str] = ()) -> str:
    """The first line of an error's message, as reported."""
    told = without_body(message[: _LOOKED_AT + len(body)].strip(), body, attributes)
    line = told.partition("\n")[0][:_LOOKED_AT]
    return printable(without_secrets(line)[:MAX_FIRST_LINE]).rstrip()


def traceback_of(error: BaseException, body: str, attributes: Collection[str] = ()) -> str:
    """The last 4 KB of the errors behind `error` and the error itself, each with its frames."""
    chain = list(islice(_chain(error), _CAUSES))
    places = [
        _places(one)
        + f"{class_of(one)}: {first_line_of(_message_of(one), body, attributes)}".removesuffix(": ")
        for one in reversed(chain)
    ]
    return end_of(printable("\n\n".join(places)))


def end_of(text: str) -> str:
    """The last 4 KB, from the beginning of a line, because the error itself is at the end."""
    if len(text.encode(errors="replace")) <= MAX_TRACEBACK:
        return text
    kept = text.encode(errors="replace")[-MAX_TRACEBACK:].decode(errors="ignore")
    return kept.partition("\n")[2] or kept


def printable(text: str) -> str:
    """`text` with a mark for every character that is not printable, a line break or a tab."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in "\n\t" else _REPLACEMENT for one in text)


def _first(error: BaseException) -> BaseException:
    """The first error of a group, which says more than the group does; any other error itself."""
    while grouped := grouped_in(error):
        error = grouped[0]
    return error


def _places(error: BaseException) -> str:
    """The frames, each with its line of code. Literals in it can be secrets."""
    found = traceback.StackSummary.extract(
        iter(list(traceback.walk_tb(error.__traceback__))[-_FRAMES:]), lookup_lines=False
    )
    clean = partial(without_secrets, is_code=True)
    return "".join(
        f'  File "{one.filename}", line {one.lineno}, in {one.name}\n'
        + (f"    {clean(line)}\n" if (line := _code(one)) else "")
        for one in found
    )


def _code(frame: traceback.FrameSummary) -> str:
    return linecache.getline(frame.filename, frame.lineno or 0).strip()[:_LOOKED_AT]


def _frames(error: BaseException) -> Iterator[Frame]:
    """The calls that led to `error`, the last one first."""
    codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    return (Frame(one.co_filename, one.co_qualname) for one in reversed(codes))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error, the first of its group or the error that caused it, and so on, as in Python's own tracebacks."""
    while error is not None:
        yield error
        behind = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        error = next(iter(grouped_in(error)), behind)


def class_of(error: BaseException) -> str:
    """The class with its module, unless it is Python's own."""
    kind = type(error)
    name = kind.__qualname__
    full = name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}"
    return printable(full[:MAX_ERROR_CLASS].partition("\n")[0])


def _message_of(error: BaseException) -> str:
    try:
        return str(error)
    except (Exception, SystemExit):  # the __str__ of an unknown class
        return ""
