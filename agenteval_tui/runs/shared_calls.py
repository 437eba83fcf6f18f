"""Equal calls that are made at the same time are made once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

from msgspec import Struct

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class _Call(Struct):
    task: asyncio.Task[Any]
    waiting: int = 0


class SharedCalls(Generic[K, T]):
    """Calls by what tells them apart. A call is cancelled when no one waits for it any more. Use it in one event
    loop, and close it."""

    def __init__(self) -> None:
        self._calls: dict[K, _Call] = {}

    def __len__(self) -> int:
        return len(self._calls)

    async def get(self, key: K, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What the call of this key gives; it is made unless it is under way."""
        call = self._calls.get(key)
        if call is None:
            call = self._calls[key] = _Call(asyncio.create_task(make()))
            call.task.add_done_callback(lambda _: self._calls.pop(key, None))
        call.waiting += 1
        try:
            result: T = await asyncio.shield(call.task)
            return result
        finally:
            call.waiting -= 1
            if not call.waiting and not call.task.done():
                call.task.cancel()

    async def close(self) -> None:
        """End what is under way."""
        calls = list(self._calls.values())
        for call in calls:
            call.task.cancel()
        await asyncio.gather(*(call.task for call in calls), return_exceptions=True)
