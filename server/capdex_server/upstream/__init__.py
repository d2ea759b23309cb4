"""Upstream MCP servers: connected, asked for their tools, watched, called, and started again.

::

    transports (stdio.py, http.py) ─ session.py (one connection) ─ supervisor.py (one server, for ever)
                                                                 ─ upstreams.py (all of them)
"""
