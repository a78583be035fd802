"""What people add to results: tags, a note, and silence for alerts. Results that they delete stay deleted.

The deletion of a result is kept, so that a late copy from an outbox or an export does not bring it back. A later state
of the same id does.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import Connection, delete, select, update

from bench.hub.db import comparisons, documents, records
from bench.hub.db.database import Database
from bench.hub.db.tables import DELETED, RESULTS
from bench.hub.problems import Problem, not_found

Tag = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._:/=+-]{0,49}$")]


class Annotations(BaseModel):
    """A change of what people add to a result. Fields that are left out or null stay as they are."""

    model_config = ConfigDict(extra="forbid", strict=True)

    tags: list[Tag] | None = Field(None, max_length=20, description="Short words to find results by.")
    note: str | None = Field(None, max_length=5_000, description="Anything worth knowing about the result.")
    silenced: bool | None = Field(None, description="Whether alerts ignore the result. A newer result alerts again.")

    @classmethod
    def parse(cls, body: bytes) -> Annotations:
        """Parse a request's body.

        Raises:
            Problem: it is invalid.
        """
        try:
            return cls.model_validate_json(body)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            at = f" at '{'.'.join(map(str, first['loc']))}'" if first["loc"] else ""
            hint = "A tag has lower-case letters, digits and any of . _ : / = + -"
            raise Problem(422, "invalid-document", f"invalid annotations{at}: {first['msg']}", hint) from None

    def columns(self) -> dict[str, Any]:
        """Return the columns to change, and their values."""
        values: dict[str, Any] = {}
        if self.tags is not None:
            values["tags"] = stored_tags(self.tags)
        if self.note is not None:
            values["note"] = self.note.replace("\0", "")
        if self.silenced is not None:
            values["silenced"] = self.silenced
        return values


def stored_tags(tags: list[str]) -> str:
    """Return tags as a column holds them: between spaces, so that each can be found."""
    return f" {' '.join(sorted(set(tags)))} " if tags else ""


def annotate(database: Database, id_: str, change: Annotations) -> None:
    """Change the annotations of a result.

    Raises:
        Problem: there is no such result.
    """

    def work(connection: Connection) -> int:
        values = {**change.columns(), "stamp": records.stamp()}
        return int(connection.execute(update(RESULTS).where(RESULTS.c.id == id_).values(values)).rowcount)

    if not database.transact(work):
        raise not_found("result", id_)


def delete_result(database: Database, id_: str) -> None:
    """Delete a result with its document, and remember the deletion.

    Raises:
        Problem: there is no such result.
    """

    def work(connection: Connection) -> bool:
        row = connection.execute(select(RESULTS.c.precedence).where(RESULTS.c.id == id_).with_for_update()).first()
        if row is None:
            return False
        connection.execute(delete(RESULTS).where(RESULTS.c.id == id_))
        connection.execute(delete(DELETED).where(DELETED.c.id == id_))
        connection.execute(DELETED.insert(), {"id": id_, "precedence": row.precedence, "deleted": records.now()})
        return True

    if not database.transact(work):
        raise not_found("result", id_)
    comparisons.remove_stale(database)


def keep_deletion(database: Database, id_: str, precedence: Any, deleted: int) -> None:
    """Remember a deletion of another hub, unless this hub has the result or its deletion.

    Raises:
        Problem: the precedence or the id is invalid.
    """
    if not isinstance(precedence, int) or not 0 <= precedence < 2**63 or not re.fullmatch(documents.ID[1:-1], id_):
        raise Problem(422, "invalid-document", "invalid deletion of a result")

    def work(connection: Connection) -> None:
        known = (select(table.c.id).where(table.c.id == id_) for table in (RESULTS, DELETED))
        if not any(connection.execute(query).first() for query in known):
            connection.execute(DELETED.insert(), {"id": id_, "precedence": precedence, "deleted": deleted})

    database.transact(work)
