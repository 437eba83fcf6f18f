"""An MCP server with one tool, without MCP's package: to import that takes a second."""

import json
import sys

TEXT = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}


def answer(method, params):
    if method == "initialize":
        server = {"name": "shop", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        return {"tools": [{"name": "find", "inputSchema": TEXT}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "found " + params["arguments"]["item"]}]}
    return {}


def serve():
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            result = answer(request["method"], request.get("params"))
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)


if __name__ == "__main__":
    serve()
