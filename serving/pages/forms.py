"""The fields of a form that the page sends."""

from urllib.parse import parse_qs

from fastapi import Request


async def form_of(request: Request) -> dict[str, str]:
    """Fields by name, the first of each; the gate has bounded the body."""
    fields = parse_qs((await request.body()).decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=10)
    return {name: values[0] for name, values in fields.items()}
