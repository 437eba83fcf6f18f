"""A small agent: it asks a model, looks orders up for it, and hands its answer on."""

import json
import os
import sys
import urllib.error
import urllib.request

ORDERS = {"W1044": {"id": "#W1044", "status": "shipped", "items": [{"name": "Copper Pan", "quantity": 1}]}}
PARAMETERS = {"type": "object", "properties": {"order_id": {"type": "string"}}}
TOOL = {"type": "function", "function": {"name": "get_order", "parameters": PARAMETERS}}


def ask(messages):
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps({"model": "demo-rules", "messages": messages, "tools": [TOOL]}).encode(),
        {"content-type": "application/json", "authorization": "Bearer " + os.environ.get("OPENAI_API_KEY", "none")},
    )
    try:
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)["choices"][0]["message"]
    except urllib.error.HTTPError:
        sys.exit(1)


messages = [{"role": "user", "content": sys.argv[1]}]
while messages[-1]["role"] != "assistant":
    messages.append(ask(messages))
    for call in messages[-1].get("tool_calls", ()):
        order = ORDERS.get(json.loads(call["function"]["arguments"])["order_id"], {"error": "no such order"})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(order)})
# messages[-1]["content"] is sent to the customer
