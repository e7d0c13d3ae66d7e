"""For mkdocs: turns pages outside `docs/` into pages of the site, and adapts links to them.

Servers are discovered, not listed, so a new one automatically has its page. Links to anything that is not a page lead
to the repository.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.zh-CN.md": "zh-CN.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "AGENTS.md": "house.md",
    "shared/README.md": "package.md",
    "examples/README.md": "example.md",
    **{
        f"servers/{page.parent.name}/{page.name}": f"servers/{page.name.replace('README', page.parent.name)}"
        for page in sorted(ROOT.glob("servers/*/README*.md"))
    },
}
"""Where a file of the repository is on the site."""

HOSTS = {
    f"hosts/{page.name}"
    for page in (ROOT / "docs/hosts").glob("*.md")
    if page.name.partition(".")[0] not in ("README", "windows")
}
"""The pages with an entry for each server and each way to start it."""

LANDING = ROOT / "docs/landing.md"
"""What the site's first page says in place of the head of `docs/README.md`, as GitHub cannot show it."""

GUIDES = {
    "Understand": ["how-it-fits.md", "subscriptions.md", "views.md", "skills.md", "size.md"],
    "Use": ["recipes.md", "servers.md", "settings.md", "faq.md", "troubleshooting.md", "upgrade.md"],
    "Run": ["team.md", "http.md", "containers.md", "one-process.md", "bundles.md", "windows.md", "macos.md"],
    "Trust": ["security.md", "privacy.md"],
    "Your own server": ["one-file.md", "write-a-server.md", "publish.md", "own-index.md"],
}
"""The pages of `docs/`, in the order in which somebody needs them."""

_LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|[a-z]+:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    servers = [page for page in PAGES.values() if page.startswith("servers/")]
    hosts = sorted(f"hosts/{page.name}" for page in (ROOT / "docs/hosts").glob("*.md") if page.stem != "README")
    (servers, servers_zh), (hosts, hosts_zh) = (_by_language(pages) for pages in (servers, hosts))
    decisions = sorted(f"decisions/{page.name}" for page in (ROOT / "docs/decisions").glob("*.md"))
    reference = sorted(f"reference/{page.name}" for page in (ROOT / "docs/reference").glob("*.md"))
    switch = sorted(f"switch/{page.name}" for page in (ROOT / "docs/switch").glob("*.md"))
    own = ["contributing.md", "conduct.md", "house.md", "package.md", "example.md", "changelog.md"]
    config.nav = [
        {"Start": "README.md"},
        {"Servers": [*servers, {"Reference": reference}]},
        {"Hosts": ["hosts/README.md", *hosts]},
        {"Guides": [*({title: pages} for title, pages in GUIDES.items()), {"Coming from another server": switch}]},
        {"For contributors": [*own, {"Decisions": decisions}]},
        {"中文": ["zh-CN.md", {"服务器": servers_zh}, {"宿主": ["hosts/README.zh-CN.md", *hosts_zh]}]},
    ]
    return config


def _by_language(pages: list[str]) -> tuple[list[str], list[str]]:
    """The English ones of `pages`, and the Chinese."""
    chinese = [page for page in pages if page.endswith(".zh-CN.md")]
    return [page for page in pages if page not in chinese], chinese


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, target in PAGES.items():
        # The site names a page by its heading if nothing stands before it.
        text = re.sub(r"^<!--.*?-->\s+", "", (ROOT / source).read_text("utf-8"))
        text = relinked(text, source, target, str(config.repo_url))
        # Pictures in HTML are beside the page's folder.
        text = re.sub(r'((?:src|srcset)=")docs/', r"\1../", text)
        files.append(File.generated(config, target, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: MkDocsConfig, files: Files) -> str:
    if page.file.src_uri in PAGES.values():
        return markdown
    if page.file.src_uri in HOSTS:
        markdown = tabbed(markdown)
    if page.file.src_uri == "README.md":
        page.meta["hide"] = ["navigation", "toc"]
        markdown = LANDING.read_text("utf-8") + markdown[markdown.index("\n## Ways to install\n") :]
    return relinked(markdown, f"docs/{page.file.src_uri}", page.file.src_uri, str(config.repo_url))


def on_page_content(html: str, page: Any, config: MkDocsConfig, files: Files) -> None:
    _markdown[page.file.dest_uri] = (str(page.title), page.markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Give models what people read: the Markdown of each page beside it, and a list of them in `llms.txt`."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    for address, (title, markdown) in sorted(_markdown.items()):
        target = posixpath.join(posixpath.dirname(address), "index.md")
        (Path(config.site_dir) / target).write_text(markdown, "utf-8")
        if not address.startswith("decisions/") and ".zh-CN" not in address:
            lines.append(f"- [{title}]({target})")
    (Path(config.site_dir) / "llms.txt").write_text("\n".join(lines) + "\n", "utf-8")


_markdown: dict[str, tuple[str, str]] = {}
"""The title and the Markdown of each page of this build, by its address."""


def tabbed(text: str) -> str:
    """A host's page with its servers as tabs, and in each the ways to start it: one entry is seen instead of 25."""
    head, *servers = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    lines = [head]
    for server, body in zip(servers[::2], servers[1::2], strict=True):
        lines.append(f'=== "{server}"\n')
        before, *ways = re.split(r"^### .+?(?:: |：)(.+)\n", body, flags=re.MULTILINE)
        lines.append(_indented(before, 4))
        for way, entry in zip(ways[::2], ways[1::2], strict=True):
            lines += [f'    === "{way[0].upper()}{way[1:]}"\n', _indented(entry, 8)]
    return "\n".join(lines)


def _indented(text: str, spaces: int) -> str:
    return "\n".join(" " * spaces + line if line else "" for line in text.split("\n"))


def relinked(text: str, source: str, target: str, repository: str) -> str:
    """`text` of the repository's file `source` with the links it needs as the site's page `target`."""

    # What a package's README links to has to work on a package index: there it is the repository's.
    text = text.replace(f"]({repository}/blob/main/", "](/")

    def moved(found: re.Match[str]) -> str:
        at = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[1])).lstrip("/")
        anchor = found[2] or ""
        page = PAGES.get(at) or (at.removeprefix("docs/") if at.startswith("docs/") else None)
        if page is None:
            return f"{repository}/blob/main/{at}{anchor}"
        return posixpath.relpath(page, posixpath.dirname(target) or ".") + anchor

    return _LINK.sub(moved, text)
