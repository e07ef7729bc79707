"""The site: `make docs` builds it into out/site, without a warning; docs/_ext has the pieces that are ours."""

import hashlib
import logging
import os
import sys
from pathlib import Path

from jupyter_client import KernelManager
from nbclient import NotebookClient
from pygments.lexers.special import TextLexer
from sphinx.highlighting import lexers

import rmab
import rmab.service  # before autodoc sets TYPE_CHECKING, under which FastAPI's own models cannot be built

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))


def _of_the_sources() -> str:
    """Return a short hash of the library's sources: outputs of notebooks are kept only as long as these do not change."""
    digest = hashlib.sha256()
    for path in sorted(Path(rmab.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


project = "rmab"
author = "the authors of rmab"
copyright = "the authors of rmab, MIT licence"
version = release = rmab.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "site_names",  # public names by subject, and links between them
    "site_math",  # formulas without a script from elsewhere
    "site_marks",  # which version a page's numbers were made with
    "site_files",  # CONTRIBUTING and its like
    "site_pictures",  # pictures of packages and data flow, drawn from the code
]
exclude_patterns = ["_ext", "_build", "**.ipynb_checkpoints"]
nitpicky = True
lexers["csv"] = TextLexer()  # which Pygments has no lexer for
default_role = "py:obj"  # in docstrings, `Arms` is a link where there is such a name

myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath", "smartquotes"]
myst_heading_anchors = 3
nb_execution_mode = os.environ.get("RMAB_DOCS_EXECUTION", "cache")  # "off" builds the pages without outputs
nb_execution_cache_path = str(HERE.parent / "out" / "site-cache" / _of_the_sources())
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_in_temp = True  # what a tutorial writes does not end up among the sources
nb_merge_streams = True
logging.getLogger("traitlets").setLevel(logging.WARNING)  # or every notebook is announced
NotebookClient.startup_timeout.default_value = 300  # seconds, for machines that are busy
if hasattr(KernelManager, "transport_encryption"):
    KernelManager.transport_encryption.default_value = "auto"  # keep the loopback private where Jupyter can

autosummary_generate = False
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "none"  # docstrings have types and shapes
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "furo"
html_title = f"rmab {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#1f5fa8", "color-brand-content": "#1f5fa8"},
    "dark_css_variables": {"color-brand-primary": "#7fb2ee", "color-brand-content": "#7fb2ee"},
}
