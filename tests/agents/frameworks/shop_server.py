"""An MCP server with one tool."""


def serve():
    try:
        from mcp.server.mcpserver import MCPServer as Server
    except ImportError:  # mcp 1.x
        from mcp.server.fastmcp import FastMCP as Server
    server = Server("shop")

    @server.tool()
    def find(item: str) -> str:
        return "found " + item

    server.run()


if __name__ == "__main__":
    serve()
