"""Formulas as MathML, which browsers draw themselves: the site works offline and without a script."""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator


def inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line."""
    self.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def block(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula of its own, with the number by which it is cited."""
    self.body.append(self.starttag(node, "div", CLASS="equation"))
    self.body.append(tex2mathml(node.astext(), as_block=True))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None), block_renderers=(block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
