"""A small library's database, so that a newcomer sees everything with one command."""

from __future__ import annotations

import contextlib
import sqlite3

import aiosqlite

__all__ = ["make_demo_database"]

_SCHEMA = """
CREATE TABLE authors (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    born INTEGER -- year
);
CREATE TABLE books (
    id INTEGER PRIMARY KEY,
    title TEXT NOT NULL,
    author_id INTEGER NOT NULL REFERENCES authors (id),
    published INTEGER, -- year
    price NUMERIC,
    copies INTEGER NOT NULL DEFAULT 1 CHECK (copies >= 0)
);
CREATE INDEX books_by_author ON books (author_id);
CREATE TABLE members (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    email TEXT NOT NULL UNIQUE,
    joined TEXT NOT NULL -- date, ISO 8601
);
CREATE TABLE loans (
    id INTEGER PRIMARY KEY,
    book_id INTEGER NOT NULL REFERENCES books (id),
    member_id INTEGER NOT NULL REFERENCES members (id) ON DELETE CASCADE,
    lent TEXT NOT NULL,
    returned TEXT -- NULL while the book is out
);
CREATE VIEW overdue AS
    SELECT loans.id, books.title, members.name AS member, loans.lent
    FROM loans JOIN books ON books.id = book_id JOIN members ON members.id = member_id
    WHERE returned IS NULL AND lent < '2026-10-01';
CREATE TRIGGER loans_take_copies AFTER INSERT ON loans BEGIN
    UPDATE books SET copies = copies - 1 WHERE id = NEW.book_id;
END;
"""
_FTS = """
CREATE VIRTUAL TABLE books_text USING fts5 (title, author);
INSERT INTO books_text (rowid, title, author)
    SELECT books.id, title, name FROM books JOIN authors ON authors.id = author_id;
"""
_AUTHORS = [
    ("Mary Shelley", 1797), ("Charles Darwin", 1809), ("Jules Verne", 1828), ("Jane Austen", 1775),
    ("Murasaki Shikibu", 973), ("Machado de Assis", 1839), ("George Eliot", 1819), ("Nikolai Gogol", 1809),
]  # fmt: skip
_BOOKS = [
    ("Frankenstein", 1, 1818), ("The Last Man", 1, 1826), ("On the Origin of Species", 2, 1859),
    ("The Voyage of the Beagle", 2, 1839), ("Around the World in Eighty Days", 3, 1872),
    ("Twenty Thousand Leagues Under the Seas", 3, 1870), ("Pride and Prejudice", 4, 1813), ("Emma", 4, 1815),
    ("The Tale of Genji", 5, 1021), ("Dom Casmurro", 6, 1899), ("Middlemarch", 7, 1871), ("Dead Souls", 8, 1842),
]  # fmt: skip
_MEMBERS = ["Ada", "Grace", "Edsger", "Barbara", "Tony", "Frances", "Donald", "Margaret"]


async def make_demo_database(path: str) -> None:
    """Make the database at `path`, where nothing is yet, with the same data each time."""
    books = [
        (title, author, year, 5 + number * 7 % 20 + 0.5, 3 + number % 3)
        for number, (title, author, year) in enumerate(_BOOKS)
    ]
    members = [
        (name, f"{name.lower()}@example.org", f"2025-{number + 1:02}-15") for number, name in enumerate(_MEMBERS)
    ]
    loans = [
        (
            number * 5 % 12 + 1,
            number * 3 % 8 + 1,
            f"2026-{number % 9 + 1:02}-10",
            None if number % 4 == 0 else f"2026-{number % 9 + 1:02}-28",
        )
        for number in range(20)
    ]
    async with aiosqlite.connect(path) as database:
        await database.executescript("PRAGMA journal_mode = WAL;" + _SCHEMA)
        await database.executemany("INSERT INTO authors (name, born) VALUES (?, ?)", _AUTHORS)
        await database.executemany(
            "INSERT INTO books (title, author_id, published, price, copies) VALUES (?, ?, ?, ?, ?)", books
        )
        await database.executemany("INSERT INTO members (name, email, joined) VALUES (?, ?, ?)", members)
        await database.executemany("INSERT INTO loans (book_id, member_id, lent, returned) VALUES (?, ?, ?, ?)", loans)
        await database.commit()
        with contextlib.suppress(sqlite3.OperationalError):  # a SQLite without FTS5
            await database.executescript(_FTS)
