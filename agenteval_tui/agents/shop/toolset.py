"""The bundled shop's tools: the toolset `demo-shop`."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from agenteval_tui.agents.base import ToolOutcome, ToolSpec
from agenteval_tui.agents.shop.database import open_shop
from agenteval_tui.agents.shop.tools import TOOLS, call_tool


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
