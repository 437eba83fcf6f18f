"""The tools that the shop gives its assistant: what they are called, what they take, and what they do."""

from __future__ import annotations

import inspect
import json
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from agenteval_tui.agents.base import ToolOutcome, ToolSpec
from agenteval_tui.extensions.demo.shop.database import TABLES, open_shop

_MAX_ROWS = 50
_MAX_STEPS = 2_000_000  # instructions of SQLite's machine: a query of a model may not run for ever

_READING = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}


class ToolRefusalError(Exception):
    """The tool says why it can't; the text goes back to who called it."""


def call_tool(shop: sqlite3.Connection, name: str, arguments: object) -> ToolOutcome:
    """Call tool `name`. Never raises: an unknown tool, wrong arguments and failures are outcomes with `error`."""
    function = _FUNCTIONS.get(name)
    if function is None:
        return ToolOutcome(f"there is no tool {name!r}; tools: {', '.join(_FUNCTIONS)}", error=True)
    if not isinstance(arguments, Mapping):
        return ToolOutcome("the arguments are not a JSON object", error=True)
    try:
        inspect.signature(function).bind(shop, **arguments)
    except TypeError as error:
        return ToolOutcome(f"wrong arguments for {name}: {error}", error=True)
    try:
        return ToolOutcome(json.dumps(function(shop, **arguments), ensure_ascii=False))
    except (ToolRefusalError, sqlite3.Error, sqlite3.Warning, ValueError, TypeError, OverflowError) as error:
        return ToolOutcome(str(error), error=True)


def describe_table(shop: sqlite3.Connection, table: str) -> dict[str, Any]:
    """Columns of a table, with types and sample values."""
    if table not in TABLES:
        raise ToolRefusalError(f"there is no table {table!r}; tables: {', '.join(TABLES)}")
    columns = []
    for _, name, kind, *_ in shop.execute(f"PRAGMA table_info({table})").fetchall():
        rows = shop.execute(f'SELECT DISTINCT "{name}" FROM {table} ORDER BY 1 LIMIT 5').fetchall()  # noqa: S608
        columns.append({"name": name, "type": kind, "samples": [value for (value,) in rows]})
    return {"table": table, "columns": columns}


def query(shop: sqlite3.Connection, sql: str) -> dict[str, Any]:
    """Run a SELECT and give its rows. Nothing can be changed."""
    shop.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY)
    budget = [_MAX_STEPS // 1000]

    def tick() -> int:
        budget[0] -= 1
        return int(budget[0] < 0)

    shop.set_progress_handler(tick, 1000)
    try:
        cursor = shop.execute(str(sql))
        rows = cursor.fetchmany(_MAX_ROWS + 1)
        names = [column[0] for column in cursor.description or ()]
    finally:
        shop.set_authorizer(None)
        shop.set_progress_handler(None, 0)
    return {"columns": names, "rows": rows[:_MAX_ROWS], "more": len(rows) > _MAX_ROWS}


def find_customer(shop: sqlite3.Connection, email: str) -> dict[str, Any]:
    """The customer with an e-mail address."""
    row = _one(shop, "SELECT * FROM customers WHERE lower(email) = lower(?)", email)
    if row is None:
        raise ToolRefusalError(f"no customer has the address {email}")
    return row


def get_order(shop: sqlite3.Connection, order_id: str) -> dict[str, Any]:
    """An order with its articles. The number may come without its #."""
    order = _one(shop, "SELECT * FROM orders WHERE id = ?", _full_id(order_id))
    if order is None:
        raise ToolRefusalError(f"order {order_id} not found")
    items = shop.execute(
        "SELECT i.sku, p.name, p.category, i.quantity, i.unit_price FROM order_items i JOIN products p USING (sku) "
        "WHERE i.order_id = ? ORDER BY i.sku",
        (order["id"],),
    )
    names = ("sku", "name", "category", "quantity", "unit_price")
    return {**order, "items": [dict(zip(names, row, strict=True)) for row in items]}


def list_orders(shop: sqlite3.Connection, customer_id: int) -> dict[str, Any]:
    """A customer's orders, newest first."""
    rows = shop.execute(
        "SELECT id, ordered_on, status, total FROM orders WHERE customer_id = ? ORDER BY ordered_on DESC, id",
        (customer_id,),
    )
    names = ("id", "ordered_on", "status", "total")
    return {"orders": [dict(zip(names, row, strict=True)) for row in rows]}


def search_products(shop: sqlite3.Connection, text: str) -> dict[str, Any]:
    """Products whose name or category contains a text."""
    rows = shop.execute(
        "SELECT sku, name, category, price, in_stock FROM products "
        "WHERE instr(lower(name || ' ' || category), lower(?)) ORDER BY sku",
        (text,),
    )
    names = ("sku", "name", "category", "price", "in_stock")
    return {"products": [dict(zip(names, row, strict=True)) for row in rows]}


def get_reviews(shop: sqlite3.Connection, sku: str) -> dict[str, Any]:
    """What customers wrote about a product."""
    rows = shop.execute("SELECT author, stars, text FROM reviews WHERE sku = ? ORDER BY id", (sku,))
    return {"reviews": [dict(zip(("author", "stars", "text"), row, strict=True)) for row in rows]}


def search_policies(shop: sqlite3.Connection, topic: str) -> dict[str, Any]:
    """The shop's rules on a topic: returns, shipping, cancellation, warranty, payment."""
    row = _one(shop, "SELECT * FROM policies WHERE topic = ?", topic)
    if row is None:
        topics = ", ".join(name for (name,) in shop.execute("SELECT topic FROM policies ORDER BY topic"))
        raise ToolRefusalError(f"nothing is written about {topic!r}; topics: {topics}")
    return row


def create_return(shop: sqlite3.Connection, order_id: str, sku: str, reason: str) -> dict[str, Any]:
    """Make a return label for an article of a delivered order. Reasons: defective, wrong_item, not_wanted."""
    order = get_order(shop, order_id)
    if order["status"] != "delivered":
        raise ToolRefusalError(f"order {order['id']} is {order['status']}, only delivered orders can be returned")
    if sku not in {item["sku"] for item in order["items"]}:
        raise ToolRefusalError(f"order {order['id']} has no article {sku}")
    cursor = shop.execute(
        "INSERT INTO returns (order_id, sku, reason) VALUES (?, ?, ?)", (order["id"], sku, str(reason))
    )
    return {"return_id": f"R{cursor.lastrowid:04d}", "order_id": order["id"], "sku": sku, "reason": reason}


def cancel_order(shop: sqlite3.Connection, order_id: str) -> dict[str, Any]:
    """Cancel an order that is still being processed."""
    order = get_order(shop, order_id)
    if order["status"] != "processing":
        raise ToolRefusalError(f"order {order['id']} is {order['status']} and can't be cancelled")
    shop.execute("UPDATE orders SET status = 'cancelled' WHERE id = ?", (order["id"],))
    return {"order_id": order["id"], "status": "cancelled"}


def issue_voucher(shop: sqlite3.Connection, email: str, amount: float) -> dict[str, Any]:
    """Send a voucher in EUR. Only after the shop's staff asked for it."""
    cursor = shop.execute("INSERT INTO vouchers (email, amount) VALUES (?, ?)", (email, float(amount)))
    return {"voucher": f"V{cursor.lastrowid:04d}", "email": email, "amount": amount}


def _one(shop: sqlite3.Connection, sql: str, value: object) -> dict[str, Any] | None:
    cursor = shop.execute(sql, (value,))
    row = cursor.fetchone()
    return None if row is None else dict(zip([column[0] for column in cursor.description], row, strict=True))


def _full_id(order_id: Any) -> str:
    text = str(order_id).strip().upper()
    return text if text.startswith("#") else f"#{text}"


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        describe_table,
        query,
        find_customer,
        get_order,
        list_orders,
        search_products,
        get_reviews,
        search_policies,
        create_return,
        cancel_order,
        issue_voucher,
    )
}
_TYPES = {"str": "string", "int": "integer", "float": "number"}


def _spec(function: Callable[..., Any]) -> ToolSpec:
    parameters = [
        parameter for parameter in inspect.signature(function).parameters.values() if parameter.name != "shop"
    ]
    return ToolSpec(
        name=function.__name__,
        description=inspect.getdoc(function) or "",
        parameters={
            "type": "object",
            "properties": {parameter.name: {"type": _TYPES[str(parameter.annotation)]} for parameter in parameters},
            "required": [parameter.name for parameter in parameters],
            "additionalProperties": False,
        },
    )


TOOLS: tuple[ToolSpec, ...] = tuple(_spec(function) for function in _FUNCTIONS.values())


class ShopTool(Struct):
    """A tool of the bundled shop, on a database that the tools of one run share."""

    spec: ToolSpec
    shop: sqlite3.Connection

    async def call(self, arguments: Mapping[str, Any]) -> ToolOutcome:
        """What the shop says."""
        return call_tool(self.shop, self.spec.name, arguments)


class Shop:
    """A shop of its own for each run."""

    def __init__(self) -> None:
        self._shop = open_shop()
        self.tools = [ShopTool(spec, self._shop) for spec in TOOLS]

    def shut(self) -> None:
        """Close the database."""
        self._shop.close()
