"""Shared by all reports: the page frame, figures as bytes, and atomic writing."""

import base64
import hashlib
import io
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rmab
from rmab.common import write_atomically
from rmab.errors import FileError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ASSETS = files("rmab.report") / "assets"


def asset(name: str) -> str:
    """Read a template, script or style of the reports."""
    return (ASSETS / name).read_text("utf-8")


def render_page(template: str, scripts: Iterable[str], styles: Iterable[str], **content: Any) -> str:
    """Render a template that extends `frame.html.jinja`, with its scripts and styles inlined."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # noqa: PLC0415  (an extra)

    script = "\n".join(map(asset, ("theme.js", *scripts)))
    environment = Environment(
        loader=FunctionLoader(asset), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(template).render(
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        style="".join(map(asset, styles)),
        version=rmab.__version__,
        **content,
    )


def figure_bytes(figure: "Figure", suffix: str, **options: Any) -> bytes:
    """Return a figure as the content of a PNG or PDF file."""
    stream = io.BytesIO()
    figure.savefig(stream, format=suffix, **options)
    return stream.getvalue()


def write_files(page: Path, html: str, folder: Path, figures: Iterable[tuple[str, bytes]]) -> tuple[Path, ...]:
    """Write a page, and its figures as (file name, content) into a folder; return the paths of the figures."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder}: cannot be written ({error.strerror or error})") from error
    paths = []
    for name, content in figures:
        paths.append(folder / name)
        write_atomically(paths[-1], content)
    write_atomically(page, html.encode())
    return tuple(paths)
