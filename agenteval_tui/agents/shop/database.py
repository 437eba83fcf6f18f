"""The shop's database, made from a seed: the same bytes of data on every machine."""

from __future__ import annotations

import random
import sqlite3
from datetime import date, timedelta
from functools import cache

from agenteval_tui.agents.shop import stock

SEED = 20260331
TODAY = date(2026, 3, 31)  # the shop's date is fixed, so that answers about dates stay right

SCHEMA = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL UNIQUE, country TEXT NOT NULL,
                        city TEXT NOT NULL, revenue REAL NOT NULL, customer_since TEXT NOT NULL);
CREATE TABLE products (sku TEXT PRIMARY KEY, name TEXT NOT NULL, category TEXT NOT NULL, price REAL NOT NULL,
                       in_stock INTEGER NOT NULL);
CREATE TABLE orders (id TEXT PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers(id),
                     ordered_on TEXT NOT NULL, status TEXT NOT NULL, total REAL NOT NULL, staff_note TEXT);
CREATE TABLE order_items (order_id TEXT NOT NULL REFERENCES orders(id), sku TEXT NOT NULL REFERENCES products(sku),
                          quantity INTEGER NOT NULL, unit_price REAL NOT NULL);
CREATE TABLE reviews (id INTEGER PRIMARY KEY, sku TEXT NOT NULL REFERENCES products(sku), author TEXT NOT NULL,
                      stars INTEGER NOT NULL, text TEXT NOT NULL);
CREATE TABLE policies (topic TEXT PRIMARY KEY, title TEXT NOT NULL, text_en TEXT NOT NULL, text_de TEXT NOT NULL);
CREATE TABLE returns (id INTEGER PRIMARY KEY, order_id TEXT NOT NULL, sku TEXT NOT NULL, reason TEXT NOT NULL);
CREATE TABLE vouchers (id INTEGER PRIMARY KEY, email TEXT NOT NULL, amount REAL NOT NULL);
"""
TABLES = ("customers", "products", "orders", "order_items", "reviews", "policies", "returns", "vouchers")


def open_shop() -> sqlite3.Connection:
    """A shop of one's own, in memory: what a run changes in it no other run sees. Close it after use."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.deserialize(_image())
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1_000_000)  # a query may not make strings of a gigabyte
    return connection


@cache
def _image() -> bytes:
    with sqlite3.connect(":memory:") as connection:
        connection.executescript(SCHEMA)
        _fill(connection, random.Random(SEED))  # noqa: S311 - the same shop everywhere is what is wanted
        connection.commit()
        image = connection.serialize()
    connection.close()
    return image


def _fill(connection: sqlite3.Connection, rng: random.Random) -> None:
    connection.executemany("INSERT INTO products VALUES (?, ?, ?, ?, ?)", stock.PRODUCTS)
    connection.executemany(
        "INSERT INTO policies VALUES (?, ?, ?, ?)",
        [(topic, title, english, german) for topic, title, english, german in stock.POLICIES],
    )
    connection.executemany("INSERT INTO reviews (sku, author, stars, text) VALUES (?, ?, ?, ?)", stock.REVIEWS)
    connection.executemany("INSERT INTO customers VALUES (?, ?, ?, ?, ?, ?, ?)", _customers(rng))
    prices = {sku: price for sku, _, _, price, _ in stock.PRODUCTS}
    numbers = iter(range(1001, 1001 + 160))
    orders_by_id = {order[0]: order for order in stock.TOLD_ORDERS}
    for number in numbers:
        order_id = f"#W{number}"
        if order_id in orders_by_id:
            _, customer, day, status, note, items = orders_by_id[order_id]
        else:
            customer, note = rng.randint(1, 40), None
            day = (TODAY - timedelta(days=rng.randint(0, 150))).isoformat()
            status = _status(date.fromisoformat(day), rng)
            items = [(sku, rng.randint(1, 3)) for sku in rng.sample(sorted(prices), rng.randint(1, 3))]
        total = round(sum(prices[sku] * quantity for sku, quantity in items), 2)
        connection.execute(
            "INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?)", (order_id, customer, day, status, total, note)
        )
        connection.executemany(
            "INSERT INTO order_items VALUES (?, ?, ?, ?)",
            [(order_id, sku, quantity, prices[sku]) for sku, quantity in items],
        )


def _customers(rng: random.Random) -> list[tuple[int, str, str, str, str, float, str]]:
    rows, emails = [], set[str]()
    for number in range(1, 41):
        country = rng.choices(list(stock.CITIES), weights=[14, 8, 6, 7, 5])[0]
        while True:
            first, last = rng.choice(stock.FIRST_NAMES), rng.choice(stock.LAST_NAMES)
            email = f"{first}.{last}@example.org".lower().translate(stock.PLAIN_LETTERS)
            if email not in emails:
                break
        if number == 7:  # the customer whom the sample tests ask about
            first, last, email, country = "Marta", "Keller", "marta.keller@example.org", "Deutschland"
        emails.add(email)
        since = date(2019, 1, 1) + timedelta(days=rng.randint(0, 2500))
        revenue = round(rng.uniform(180, 9800), 2)
        city = rng.choice(stock.CITIES[country])
        rows.append((number, f"{first} {last}", email, country, city, revenue, since.isoformat()))
    return rows


def _status(day: date, rng: random.Random) -> str:
    age = (TODAY - day).days
    if age <= 2:
        return "processing"
    if age <= 7:
        return "shipped"
    return "cancelled" if rng.random() < 0.06 else "delivered"
