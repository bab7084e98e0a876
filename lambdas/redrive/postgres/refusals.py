"""What a refusal of Postgres's is about, by its SQLSTATE: a moment, everybody, or maybe one row alone.

Whether it was one row, nobody can tell from the code: a column that became `not null` refuses every letter by the code
that a single bad one gets, and a trigger may raise any. Who others went in beside is at fault, see `batches`.
https://www.postgresql.org/docs/current/errcodes-appendix.html
"""

from __future__ import annotations

from enum import Enum

import psycopg

from redrive.errors import CallFailed

#: What was to be inserted is not there: the statements that move letters divide by how often it is, and do nothing then.
SWALLOWED = "InsertSwallowed"
_SWALLOWED_DETAIL = "a trigger keeps rows out of the table, or changes their ids, or a check divides by zero: nothing was moved"


class About(Enum):
    """Whom a refusal would meet again."""

    MOMENT = "MOMENT"
    EVERYBODY = "EVERYBODY"
    SOME = "SOME"


#: Connections, transactions that met another, locks, a server that starts or stops.
_MOMENT = ("08", "40", "55P03", "57P")

#: A transaction that may not write, who one is, the database, a schema, resources, an operator's doing, the machine.
_EVERYBODY = ("25", "28", "3D", "3F", "53", "57", "58")
#: Of these: one letter may want more memory or time than there is.
_SOME = ("53200", "57014")

#: Rights, names, and what the table can't do. A function says so of what it does with one row.
_EVERYBODY_OUTSIDE_FUNCTIONS = ("0A", "42", "55")

#: How PL/pgSQL's own word for an error stands in the context of one, in every language.
_RAISED = "RAISE"


class StatementRefused(CallFailed):
    """Raised when Postgres refuses a statement; nothing of it was done.

    `about`: whom it would meet. `may_be_one`: one row alone may have brought it about. `answer`: its code with the name of a
    constraint or column, and nothing that a row holds.
    """

    def __init__(self, call: str, code: str, detail: str, *, sqlstate: str, context: str) -> None:
        super().__init__(call, code, detail)
        self.about = about(sqlstate, context)
        self.may_be_one = self.about is About.SOME or bool(context)
        self.answer = code

    @classmethod
    def of(cls, call: str, error: psycopg.Error) -> StatementRefused:
        """What psycopg raised. Of its text the first line alone: the lines below it may quote a row."""
        code, detail = type(error).__name__, str(error).partition("\n")[0]
        context = error.diag.context or ""
        if isinstance(error, psycopg.errors.DivisionByZero) and not context:
            code, detail = SWALLOWED, _SWALLOWED_DETAIL
        refused = cls(call, code, detail, sqlstate=error.sqlstate or "", context=context)
        if name := error.diag.constraint_name or error.diag.column_name:
            refused.answer = f"{code} ({name})"
        return refused


def about(sqlstate: str, context: str) -> About:
    """Whom a refusal with this code would meet; `context`: where in a function or an index it came up, or empty."""
    if _RAISED in context:
        return About.SOME
    if sqlstate.startswith(_MOMENT):
        return About.MOMENT
    if context or sqlstate.startswith(_SOME):
        return About.SOME
    is_everybodys = sqlstate.startswith((*_EVERYBODY, *_EVERYBODY_OUTSIDE_FUNCTIONS))
    return About.EVERYBODY if is_everybodys else About.SOME
