"""Makes the shop's database in the working folder of a run, and says which order is to be cancelled."""

import contextlib
import sqlite3
from pathlib import Path

ORDERS = [("W1044", "pending", 49.0), ("W1051", "shipped", 12.5)]


def make_shop():
    with contextlib.closing(sqlite3.connect("shop.db")) as database, database:
        database.execute("create table orders (id text primary key, status text, total real)")
        database.executemany("insert into orders values (?, ?, ?)", ORDERS)
    Path("mails").mkdir()
    return {"order": "W1044"}
