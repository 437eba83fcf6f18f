"""The bundled shop's tools."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agenteval_tui.agents.base import ToolSpec
from agenteval_tui.agents.shop.database import open_shop
from agenteval_tui.agents.shop.tools import TOOLS, ToolOutcome, call_tool


@dataclass(slots=True)
class ShopTool:
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


class OwnShop:
    """A shop that ends with its toolbox. Its tools are in the box already."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop

    async def open(self) -> list[ShopTool]:
        """Nothing more."""
        return []

    async def close(self) -> None:
        """Close the database."""
        self._shop.shut()
