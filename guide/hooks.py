"""Extends mkdocs: adds pages from outside docs/, fills in generated reference, and moves scripts out of the
pages, so that the guide runs under the Content-Security-Policy of all pages.
"""

from __future__ import annotations

import os
import posixpath
import re
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

import generated
from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[1]
# Pages from elsewhere in the repository, with their names in the guide.
BROUGHT: Final = {
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "web/public/mark.svg": "mark.svg",
    **{
        path.relative_to(ROOT).as_posix(): f"examples/{path.parent.name}{path.suffix}"
        for path in sorted(ROOT.glob("examples/*/README.md"))
    },
    **{
        path.relative_to(ROOT).as_posix(): f"examples/{path.parent.name}-{path.name}"
        for path in sorted(ROOT.glob("examples/*/*.svg"))
    },
}
# The README is the front page on GitHub; docs/README.md is the guide's.
ALIASES: Final = {"README.md": "docs/README.md"}

LINK: Final = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
CODE: Final = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
DIRECTIVE: Final = re.compile(r"^<!-- generated: (.+) -->$", re.MULTILINE)
SCRIPT: Final = re.compile(r"<script>(.*?)</script>", re.DOTALL)
# GitHub reads these as a list and a pipe; Python-Markdown needs a blank line, and no backslash.
LIST_AFTER_TEXT: Final = re.compile(r"^((?![-*|#>]|\d+\. |$)\S.*\n)(?=(?:-|1\.) )", re.MULTILINE)
# Names under assets/ change with the content, so browsers cache them; this name does not change.
MKDOCSTRINGS_STYLES: Final = "stylesheets/mkdocstrings.css"

_scripts: dict[str, str] = {}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, name in BROUGHT.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001  # mkdocs passes all of them
    source = next((path for path, name in BROUGHT.items() if name == page.file.src_uri), None)
    return filled(linked(markdown, source or f"docs/{page.file.src_uri}", page.file.src_uri))


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001  # mkdocs passes all of them
    output = output.replace("assets/_mkdocstrings.css", MKDOCSTRINGS_STYLES)
    output = output.replace(
        'role="dialog"', 'role="dialog" aria-label="Search"'
    )  # the theme gives it no name
    return with_scripts_apart(output, page.file.dest_uri)


def on_post_build(config: MkDocsConfig) -> None:
    site = Path(config.site_dir)
    (site / "assets" / "_mkdocstrings.css").rename(site / MKDOCSTRINGS_STYLES)
    for name, script in _scripts.items():
        place = site / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(script)


def filled(markdown: str) -> str:
    """With generated reference in place of each `<!-- generated: … -->`."""
    return DIRECTIVE.sub(lambda found: generated.markdown(found[1]), markdown)


def linked(markdown: str, source: str, name: str) -> str:
    """With the guide's links, for a page at `source` in the repository.

    A link to a file that is not in the guide becomes its text.
    """

    def link(found: re.Match[str]) -> str:
        image, text, target = found.groups()
        if re.match(r"[a-z]+:|#", target):
            return found[0]
        file, hash_, anchor = target.partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), file))
        there = _place(ALIASES.get(path, path))
        if there is None:
            return text
        return f"{image}[{text}]({posixpath.relpath(there, posixpath.dirname(name) or '.')}{hash_}{anchor})"

    # Code has no links.
    code: list[str] = []
    hidden = CODE.sub(lambda found: code.append(found[0]) or f"\0{len(code) - 1}\0", markdown)
    hidden = LIST_AFTER_TEXT.sub(r"\1\n", LINK.sub(link, hidden))
    return re.sub(r"\0(\d+)\0", lambda found: _code(code[int(found[1])]), hidden)


def _code(code: str) -> str:
    return code if code.startswith("```") else code.replace("\\|", "|")


def _place(path: str) -> str | None:
    """The place of a file in the guide, or None. A broken link stays, so that mkdocs complains."""
    if path in BROUGHT:
        return BROUGHT[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return None if (ROOT / path).exists() else path


def with_scripts_apart(html: str, page: str) -> str:
    def apart(found: re.Match[str]) -> str:
        name = f"assets/scripts/{blake2b(found[1].encode(), digest_size=8).hexdigest()}.js"
        _scripts[name] = found[1]
        return f'<script src="{posixpath.relpath(name, posixpath.dirname(page) or os.curdir)}"></script>'

    return SCRIPT.sub(apart, html)
