"""Manuals: which pages of each documentation package count, and where their main region is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from .html_text import page_text

Files = Iterable[tuple[str, bytes]]
_SPHINX = r"headerlink|sphinxsidebar|\brelated\b|toctree|\bcontents\b|linenos|\bnavigation\b|highlight-console-caption"


def _pages(
    wanted: str, unwanted: str, start: tuple[str, str, str] | None, dropped: str
) -> Callable[[Files], Iterator[tuple[str, str]]]:
    want, leave = re.compile(wanted), re.compile(unwanted)

    def extract(files: Files) -> Iterator[tuple[str, str]]:
        for name, content in files:
            if want.search(name) and not leave.search(name):
                yield name, page_text(content, start, dropped)

    return extract


EXTRACTORS = {
    "python_doc": _pages(
        r"/html/.*\.html$",
        r"genindex|modindex|search|contents\.html|changelog|/whatsnew/2|download|bugs\.html",
        ("div", "class", "body"),
        _SPHINX,
    ),
    "postgresql_doc": _pages(
        r"/html/.*\.html$",
        r"/(release|bookindex|index|features-|sql-keywords|errcodes|biblio|acronyms)",
        None,
        r"nav(header|footer)|\btoc\b",
    ),
    "django_doc": _pages(
        r"/html/.*\.html$",
        r"genindex|modindex|search|contents\.html|/releases/(0|1\.[0-9]\.)|/releases/security",
        ("div", "id", "bd"),
        _SPHINX + r"|sidebar|\bnav\b|global-nav",
    ),
    "sqlite_doc": _pages(
        r"/sqlite3/.*\.html$",
        r"releaselog|changes\.html|/syntax/|keyword_index|sitemap|search|news\.html|doclist|cves|requirements|matrix|/hlr",
        None,
        r"nosearch|menu|\btoc\b|searchmenu|nounderline|rightmenu",
    ),
    "erlang_doc": _pages(
        r"/html/.*\.html$|/doc/erlang-doc/doc/.*\.html$",
        r"notes|wx-|/index|users_guide|_intro\.html$|glossary|man_index",
        ("div", "id", "content"),
        r"leftnav|footer",
    ),
    "rust_books": _pages(
        r"/html/(book|nomicon|reference|edition-guide|embedded-book|rust-by-example|rustc|cargo|rustdoc)/.*\.html$",
        r"print\.html|toc\.html|SUMMARY|404|/redirects/|second-edition|2018-edition",
        ("main", "class", ""),
        r"buttons|nav-|boring",
    ),
    "llvm_doc": _pages(
        r"/html/(?!_).*\.html$",
        r"genindex|search|/AMDGPU/|AMDGPUAsm|AMDGPUUsage|DoxygenMain|contents\.html",
        ("div", "class", "body"),
        _SPHINX,
    ),
    "apache_doc": _pages(
        r"/manual/en/.*\.html$",
        r"/(sitemap|license|glossary|index)\.html|quickreference|directives\.html",
        ("div", "id", "page-content"),
        r"\bqv\b|quickview|langavail|comments_section|\btop\b|toplang|bottomlang",
    ),
    "sqlalchemy_doc": _pages(
        r"/html/.*\.html$",
        r"genindex|search|/changelog/|/_modules/|modindex|copyright",
        ("div", "id", "docs-body"),
        _SPHINX + r"|docs-sidebar|viewcode",
    ),
    "scipy_doc": _pages(
        r"/html/(tutorial|reference|dev)/.*\.html$",
        r"genindex|search|/release|roadmap",
        ("main", "role", "main"),
        _SPHINX + r"|bd-toc|prev-next",
    ),
    "sklearn_doc": _pages(
        r"/html/(modules|tutorial|auto_examples|developers)/.*\.html$",
        r"genindex|search|/classes\.html|computation_times",
        ("div", "role", "main"),
        _SPHINX + r"|sk-sidebar|sphx-glr-(footer|script-out|thumb|signature|timing)|sk-toc",
    ),
    "neutron_doc": _pages(
        r"/html/(?!_).*\.html$",
        r"genindex|search|modindex|sample|configuration/(policy|config-)",
        ("div", "class", "docs-body"),
        _SPHINX + r"|docs-sidebar|docs-actions|docs-top",
    ),
    "nodejs_doc": _pages(
        r"/nodejs/api/.*\.html$",
        r"/(all|index|deprecations|errors)\.html",
        ("div", "id", "apicontent"),
        r"\bmark\b|srclink|changelog|api_stability_0|\btoc\b",
    ),
    "twisted_doc": _pages(
        r"/html/.*\.html$", r"/api/|genindex|search|listings|historic", ("div", "class", "body"), _SPHINX
    ),
    "nova_doc": _pages(
        r"/html/(?!_).*\.html$",
        r"genindex|search|modindex|sample",
        ("div", "class", "docs-body"),
        _SPHINX + r"|docs-sidebar|docs-actions|docs-top",
    ),
}
