"""The server of PostgreSQL that other tests stand on."""

from __future__ import annotations

import psycopg2
import pytest

from tests.postgres import Postgres


@pytest.mark.xdist_group("postgres")
def test_each_database_is_new_and_the_password_counts(postgres: Postgres) -> None:
    one, other = postgres.database(), postgres.database()
    assert one != other
    with psycopg2.connect(one) as connection, connection.cursor() as cursor:
        cursor.execute("create table a (b int); insert into a values (1); select b from a")
        assert cursor.fetchall() == [(1,)]
    with psycopg2.connect(other) as connection, connection.cursor() as cursor:
        cursor.execute("select count(*) from information_schema.tables where table_schema = 'public'")
        assert cursor.fetchall() == [(0,)]
    with pytest.raises(psycopg2.OperationalError, match="password authentication failed"):
        psycopg2.connect(one.replace(postgres.password, "wrong"))
    assert postgres.folder.stat().st_uid != 0, "PostgreSQL refuses root"
