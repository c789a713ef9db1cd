"""Text from data on its way to a terminal: what would move the cursor or turn writing round is shown."""

import re

from rich.markup import escape as escape_markup

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but for tab and new line, those that change the direction of writing, and halves of characters."""


def printable(text: str) -> str:
    """A text, or JSON, with its control characters as JSON's escapes, such as \\u001b."""
    return CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def one_line(text: str) -> str:
    """The same for what must stay on one line, such as the name of a file: new lines and tabs are shown too."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def escape(text: str) -> str:
    """A text for a console of rich: nothing in it is markup or a control character."""
    return escape_markup(printable(text))
