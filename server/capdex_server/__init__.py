"""capdex's server: the MCP endpoint, its REST twins and the command line."""
