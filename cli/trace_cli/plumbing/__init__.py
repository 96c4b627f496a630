"""Commands for programs, one file each: output documented to the byte, nothing but data on standard output.

What only some calls of a command come to is imported by way of this package, when it is first asked for.
"""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.plumbing.addresses import addressed
    from trace_cli.plumbing.contents import (
        content_fields,
        content_of,
        json_line,
        object_name,
        size_of,
    )
    from trace_cli.plumbing.ranges import reach, resolve
    from trace_cli.plumbing.support import open_store

__all__ = [
    "addressed",
    "content_fields",
    "content_of",
    "json_line",
    "object_name",
    "open_store",
    "reach",
    "resolve",
    "size_of",
]

__getattr__ = door(
    __name__,
    {
        "addressed": "addresses",
        "content_fields": "contents",
        "content_of": "contents",
        "json_line": "contents",
        "object_name": "contents",
        "open_store": "support",
        "reach": "ranges",
        "resolve": "ranges",
        "size_of": "contents",
    },
)
