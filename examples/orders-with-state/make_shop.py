"""Makes the shop's database in the working folder of a run, and says which order is to be cancelled."""

import json
import sqlite3
from pathlib import Path

with sqlite3.connect("shop.db") as database:
    database.execute("create table orders (id text primary key, status text, total real)")
    database.executemany(
        "insert into orders values (?, ?, ?)", [("W1044", "pending", 49.0), ("W1051", "pending", 12.5)]
    )
Path("mails").mkdir()
print(json.dumps({"order": "W1044"}))
