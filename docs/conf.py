"""Configuration of the documentation; ``make -C docs html`` builds it without the network."""

import sys
from pathlib import Path

from bincp._utils.version import __version__

sys.path.append(str(Path(__file__).parent / "_ext"))

project = "bincp"
author = "The bincp developers"
copyright = author  # noqa: A001 (Sphinx asks for this name)
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "certificate_pages",
    "reference_pages",
]
exclude_patterns = ["_build", "paper"]
templates_path: list[str] = []
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "amsmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = f"bincp {version}"
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_favicon = "_static/favicon.svg"
# The theme of the reader; without it the script of the theme complains in the console.
html_context = {"default_mode": "auto"}
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 5,
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"index": []}
html_copy_source = False
html_show_sourcelink = False
