"""Databases: SQLite files, and a PostgreSQL server of its own where Debian's is installed."""

from databases import fresh_url, postgres

__all__ = ["fresh_url", "postgres"]
