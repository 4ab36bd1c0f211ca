"""MkDocs' hook for the site of `make docs`: all documents of the repository, reference and gallery.

Documents keep their paths, so the links between them hold on the site as they do in the repository.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from gallery import gallery_files
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify
from reference import reference_pages

PROJECT = Path(__file__).resolve().parents[2]
DOCUMENTS = (
    "*.md",
    "docs/*.md",
    "[!.]*/README.md",
    "ioncast/*/README.md",
    "experiments/**/README.md",
)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s#]+)(?:#[^)\s]*)?\)")

FENCE = re.compile(r"(?ms)^(```.*?^```$)")
FENCE_IN_LIST = re.compile(r"(?ms)^( {2,3})```.*?^\1```$")
CODE_IN_LIST = re.compile(r"(?<=\n\n)(?: {6}.*\n)+")
SHORT_INDENT = re.compile(r"(?m)^ {2,3}(?=\S)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Let headings have the anchors that GitHub gives them, because links use those."""
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Replace the files of docs/ by the documents, the files that they link to, and made pages."""
    for file in list(files):
        if file.src_dir == config.docs_dir:
            files.remove(file)
    documents = {path for pattern in DOCUMENTS for path in PROJECT.glob(pattern)}
    linked = {path for document in documents for path in _linked_files(document)}
    for path in sorted({PROJECT / "docs/site/style.css", *documents, *linked}):
        name = path.relative_to(PROJECT).as_posix()
        files.append(File.generated(config, name, abs_src_path=str(path)))
    for name, content in {**reference_pages(), **gallery_files()}.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Adapt a document to MkDocs.

    The site shows no folders, so links to them keep only their words. And MkDocs reads the lines
    below an item of a list as a part of it only if they are indented by four blanks.
    """
    here = PROJECT / page.file.src_uri

    def without_folder(link: re.Match[str]) -> str:
        return link[2] if (here.parent / link[3]).is_dir() else link[0]

    parts = FENCE.split(LINK.sub(without_folder, markdown))
    parts[::2] = map(_with_wide_lists, parts[::2])
    return "".join(parts)


def _with_wide_lists(markdown: str) -> str:
    """Markdown with four blanks instead of two or three before the content of lists."""
    wide = CODE_IN_LIST.sub(lambda code: textwrap.indent(code[0], "  "), markdown)
    wide = FENCE_IN_LIST.sub(lambda code: textwrap.indent(code[0], " " * (4 - len(code[1]))), wide)
    return SHORT_INDENT.sub("    ", wide)


def _linked_files(document: Path) -> set[Path]:
    """The files of the project to which a document links."""
    found = LINK.findall(document.read_text(encoding="utf-8"))
    paths = {(document.parent / target).resolve() for _, _, target in found}
    return {path for path in paths if path.is_file() and path.is_relative_to(PROJECT)}
