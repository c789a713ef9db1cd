"""The HTTP server, the web page and the MCP server; empty until their issue."""
