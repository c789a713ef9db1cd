"""Addresses of servers: read strictly, and shown without anything that could be a secret.

A password, a fragment, and a parameter that could hold a secret have no place in an address: they come from environment
variables. Whatever stands there all the same is never repeated: shown are scheme, host, port and path alone.
"""

import re
from collections.abc import Collection
from urllib.parse import SplitResult, parse_qsl, urlsplit

BOLT_SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")
SECRET_NAME = re.compile(r"pass|pwd|secret|token|key|auth|credential|session|signature|\b(sig|sas)\b", re.IGNORECASE)
"""Parameters whose value would be a secret, wherever in their name it stands."""
ADDRESS = re.compile(
    r"""(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://
        (?:(?P<user>[A-Za-z0-9_.~%!$&*+,;=-]+)@)?
        (?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?)
        (?::(?P<port>[0-9]{1,5}))?
        (?P<path>/[^@?\#]*)?
        (?:\?[^@\#]*)?""",
    re.VERBOSE,
)
"""An address without a password, a fragment, and an @ behind its host (which could end a password with a slash)."""
FORBIDDEN = re.compile(r'[^!-~]|[\\"<>^`{}|]')
PASSWORD = re.compile(r"[^/?#]*//[^/?#@]*:[^@]*@")
PARAMETERS = 100


def read_address(
    url: str, *, schemes: Collection[str], user: bool = False, parameters: Collection[str] | None = None
) -> SplitResult:
    """The parts of an address; ValueError, which repeats nothing of it, for what is not strictly one.

    `user`: whether `user@` may stand before the host; `parameters`: those that it may have, None for any but secrets.
    """
    if PASSWORD.match(url):
        raise ValueError("has a password in it; take it out, and name the environment variable that holds it")
    match = ADDRESS.fullmatch(url)
    if FORBIDDEN.search(url) or match is None or match["scheme"].lower() not in schemes:
        raise ValueError(
            f"expected a URL {' or '.join(f'{scheme}://' for scheme in schemes)}host:port/path, without a password or "
            "a fragment, and with other characters percent-encoded; an environment variable holds the secret"
        )
    if match["port"] is not None and not 0 < int(match["port"]) < 2**16:
        raise ValueError("expected a port from 1 to 65535")
    if match["user"] is not None and not user:
        raise ValueError("expected no name before the host; give `user`, and name a variable for the password")
    parts = urlsplit(url)
    for name, _ in parse_qsl(parts.query, keep_blank_values=True, max_num_fields=PARAMETERS):
        if SECRET_NAME.search(name):
            raise ValueError(f"has a secret in its parameter {name!r}; name an environment variable instead")
        if parameters is not None and name not in parameters:
            raise ValueError(f"has a parameter that is not known here; known: {', '.join(parameters) or 'none'}")
    return parts


def shown(url: str) -> str:
    """Scheme, host, port and path; nothing at all of what is not strictly an address."""
    match = ADDRESS.fullmatch(url)
    if match is None or FORBIDDEN.search(url):
        return "(an address that cannot be read)"
    port = "" if match["port"] is None else f":{match['port']}"
    return f"{match['scheme']}://{match['host']}{port}{match['path'] or ''}"
