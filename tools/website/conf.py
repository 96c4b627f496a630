"""How Sphinx builds the site: MyST reads the pages, autodoc the docstrings, Furo gives them their looks.

Everything is local: no font, script, style or image comes from another host. The build is strict (`-n -W`), so a link
to a page or heading that does not exist, and a page that nothing leads to, end it.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx.addnodes import pending_xref
from sphinx.ext.napoleon import Config as Sections
from sphinx.ext.napoleon.docstring import GoogleDocstring
from sphinx.util.nodes import find_pending_xref_condition

import trace_store
from tools.website import docstrings

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "Trace"
author = "Trace contributors"
version = release = trace_store.__version__
html_title = "Trace"
html_short_title = "Trace"

extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "index"
nitpicky = False
default_role = "py:obj"
smartquotes = False

myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
autodoc_default_options = {"members": True}
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"

# JSON excerpts with an ellipsis are not valid JSON; they get no highlighting.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_theme_options = {
    "footer_icons": [],
    "navigation_with_keys": True,
}
html_static_path = ["static"]
html_css_files = ["trace.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_use_index = False
html_domain_indices = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"


# Created by other functions only, so constructors are not documented.
HANDED_OUT = {
    "trace_store.CompiledContext",
    "trace_store.CompiledMessage",
    "trace_store.Draft",
    "trace_store.Repo",
    "trace_store.Store",
}
# In signatures, the name of something else than the class of that name: any part of a message.
OTHERS = {"Part"}
SECTIONS: Any = Sections(napoleon_use_rtype=False, napoleon_attr_annotations=False)


def prepare(app: Any, what: Any, name: str, item: object, options: Any, lines: list[str]) -> None:
    """Change the lines of a docstring in place; a module's is for those who read the module."""
    if what == "module":
        lines.clear()
        return
    # As a method's: an attribute's would be read as "type: description", and its sections not at all.
    kind: Any = "method" if what in ("attribute", "property") else what
    ours = docstrings.prepared(lines)
    lines[:] = GoogleDocstring(ours, SECTIONS, app, kind, name, item, options).lines()


def skip(
    _app: Any, _what: Any, _name: str, item: object, _skip: bool, _options: Any
) -> bool | None:
    """Leave out the fields of a named tuple as members: its docstring lists them."""
    return True if type(item).__name__ == "_tuplegetter" else None


def prepare_signature(
    _app: Any,
    _what: Any,
    name: str,
    _item: object,
    _options: Any,
    signature: str | None,
    returned: str | None,
) -> tuple[str | None, str | None]:
    """Return the displayed signature and return type."""
    if name in HANDED_OUT:
        return "", None
    return signature and docstrings.written(signature), returned


def tidy(_app: Any, page: nodes.document) -> None:
    """Take links away that lead elsewhere than they say, and write dashes as dashes."""
    for link in list(page.findall(pending_xref)):
        named = link.get("reftarget", "")
        if link.get("reftype") == "class" and (hasattr(builtins, named) or named in OTHERS):
            shown = find_pending_xref_condition(link, "resolved") or link
            link.replace_self(shown.children)
    for text in list(page.findall(nodes.Text)):
        if text == " -- ":
            text.parent.replace(text, nodes.Text(" – "))


def setup(app: Sphinx) -> None:
    """Register our page and docstring extensions with Sphinx."""
    for language in ("hex", "jsonl"):
        app.add_lexer(language, TextLexer)
    app.connect("autodoc-process-docstring", prepare)
    app.connect("autodoc-process-signature", prepare_signature)
    app.connect("autodoc-skip-member", skip)
    app.connect("doctree-read", tidy)
