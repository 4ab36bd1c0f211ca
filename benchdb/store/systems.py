"""Systems in the database: their names, which names are accepted, and their revisions."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from uuid import uuid4

from sqlalchemy import Connection, bindparam, insert, select, update

from benchdb.store.schema import imports, longest, systems
from ioncast_base.errors import InputError, UnknownNameError
from ioncast_base.wording import alike_first

# Statements are built once, because SQLAlchemy needs longer to build one than a database to
# answer it.
_NAMES = select(systems.c.name)
_ID = select(systems.c.id).where(systems.c.name == bindparam("wanted"))
_REVISE = (
    update(systems)
    .where(systems.c.id == bindparam("of_system"))
    .values(revision=bindparam("new_revision"))
)


def system_names(connection: Connection) -> list[str]:
    """The names of all systems, in the order of their bytes."""
    return sorted(connection.scalars(_NAMES))


def measured_systems(connection: Connection) -> list[str]:
    """The names of all systems that have measurements, in the order of their bytes."""
    measured = select(imports.c.id).where(imports.c.system_id == systems.c.id).exists()
    return sorted(connection.scalars(_NAMES.where(measured)))


def require_system(connection: Connection, name: str) -> str:
    """Return the name of a system; an UnknownNameError if the database does not have it."""
    names = system_names(connection)
    if name not in names:
        raise UnknownNameError(f"the database has no system {name!r}", remedy=_instead(name, names))
    return name


def _instead(name: str, names: Sequence[str]) -> str:
    if not names:
        return "import measurements first"
    which = "systems are" if len(names) > 1 else "only system is"
    return f"its {which} {alike_first(name, names)}"


def system_id_of(connection: Connection, name: str) -> int:
    """The id of a system, which is created if the database does not have it yet.

    A name that differs from that of another system only in case or blanks is an InputError.
    """
    check_new_system(connection, name)
    known = connection.scalar(_ID, {"wanted": name})
    if known is not None:
        return int(known)
    [key] = connection.scalars(insert(systems).values(name=name).returning(systems.c.id))
    return int(key)


def check_new_system(connection: Connection, name: str) -> None:
    """Reject a name that is not valid, or differs from another one only in case or blanks."""
    check_system_name(name)
    names = system_names(connection)
    alike = next((other for other in names if _spelling(other) == _spelling(name)), None)
    if alike is not None and name not in names:
        raise InputError(
            f"the database already has a system {alike!r}",
            where=f"system {name!r}",
            remedy="use that spelling, or a name that differs in more than case and blanks",
        )


def check_system_name(name: str) -> None:
    """Reject a name that no database accepts."""
    if not name or name != " ".join(name.split()) or not name.isprintable():
        raise InputError(
            f"{name!r} is not a valid name of a system",
            remedy="use printable characters, with single blanks between words",
        )
    if len(name) > (most := longest(systems.c.name)):
        raise InputError(f"the name of the system has {len(name)} characters, more than {most}")


def revise(connection: Connection, system_id: int) -> None:
    """Record that the measurements of a system have changed."""
    connection.execute(_REVISE, {"of_system": system_id, "new_revision": uuid4().hex})


def _spelling(name: str) -> str:
    return "".join(unicodedata.normalize("NFKC", name).split()).casefold()
