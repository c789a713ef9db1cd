"""A typed client of the query server, sync and async (extra `client`).

    with Client("http://127.0.0.1:8080") as helios:
        helios.ask("Who designed the Forth Bridge?")["answer"]["text"]

Replies are what the server sent, as plain data with types; docs/server.md describes them. What the server refuses is a
`ServerError` with the code of its problem.
"""

from typing import TYPE_CHECKING, Any

from helios.extras import import_library

if TYPE_CHECKING:
    from helios.client.asynchronous import AsyncClient
    from helios.client.synchronous import Client

__all__ = ["AsyncClient", "Client"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        import_library("httpx", needed_by="helios.client")
    if name == "Client":
        from helios.client.synchronous import Client

        return Client
    if name == "AsyncClient":
        from helios.client.asynchronous import AsyncClient

        return AsyncClient
    raise AttributeError(f"module 'helios.client' has no attribute {name!r}")
