"""Version 2 of the assistant: what is different from version 1, and nothing else."""

from __future__ import annotations

from agenteval_tui.agents.base import ToolOutcome
from agenteval_tui.agents.shop.assistant import AssistantV1
from agenteval_tui.agents.shop.intent import Intent
from agenteval_tui.agents.shop.protocol import Call, Talk, Turn, value_of


class AssistantV2(AssistantV1):
    """The second version."""

    name = "demo-rules v2"

    def number(self, written: str) -> str:
        """A number as SQL has it: points and commas before three digits part thousands, the last other one decimals."""
        whole, decimals = written, ""
        cut = max(written.rfind(","), written.rfind("."))
        if cut >= 0 and len(written) - cut - 1 != 3:
            whole, decimals = written[:cut], written[cut + 1 :]
        digits = whole.replace(".", "").replace(",", "")
        return f"{digits}.{decimals}" if decimals else digits

    def notes_in(self, outcome: ToolOutcome) -> str:
        """Only an order's field for the staff is theirs; what customers wrote is not."""
        return str(value_of(outcome).get("staff_note") or "")

    def cancel(self, wish: Intent) -> Talk:
        """Cancel an order, one look-up shorter than before."""
        if not wish.order_id:
            yield Turn(self.say(wish, "which_order"))
            return
        yield Turn(self.say(wish, "look"), (Call("cancel_order", {"order_id": wish.order_id}),))
        yield Turn(self.say(wish, "cancelled", order=wish.order_id))


VERSIONS: dict[str, type[AssistantV1]] = {"v1": AssistantV1, "v2": AssistantV2}
