"""The usual kinds of files, by the names of ripgrep's `--type`."""

from __future__ import annotations

from mcp_batteries.errors import Invalid, quote

__all__ = ["globs_of_type"]

_TYPES = """
    c *.c *.h
    cpp *.cpp *.cc *.cxx *.hpp *.hh *.hxx *.h *.inl
    cs *.cs
    css *.css *.scss *.sass *.less
    csv *.csv *.tsv
    docker Dockerfile *.dockerfile Dockerfile.*
    go *.go
    html *.html *.htm
    java *.java
    js *.js *.jsx *.mjs *.cjs *.vue
    json *.json *.jsonl *.ndjson
    kotlin *.kt *.kts
    lua *.lua
    make Makefile makefile GNUmakefile *.mk
    md *.md *.markdown *.mdx
    php *.php
    py *.py *.pyi *.pyw
    r *.r *.R *.Rmd
    rst *.rst
    ruby *.rb Gemfile Rakefile *.gemspec
    rust *.rs
    scala *.scala *.sbt
    sh *.sh *.bash *.zsh
    sql *.sql
    swift *.swift
    tex *.tex *.bib
    toml *.toml
    ts *.ts *.tsx *.mts *.cts
    txt *.txt
    xml *.xml *.xsd *.xsl *.svg
    yaml *.yaml *.yml
"""

_ALIASES = {
    "c++": "cpp",
    "csharp": "cs",
    "dockerfile": "docker",
    "javascript": "js",
    "markdown": "md",
    "python": "py",
    "rb": "ruby",
    "rs": "rust",
    "text": "txt",
    "typescript": "ts",
    "yml": "yaml",
}

_LINES = (str(line).split() for line in _TYPES.strip().splitlines())
_GLOBS: dict[str, list[str]] = {name: globs for name, *globs in _LINES}


def globs_of_type(name: str) -> list[str]:
    """Return the globs of file names of that type.

    Raises:
        Invalid: there is no such type here.
    """
    type_name = name.casefold().removeprefix("*").removeprefix(".")
    type_name = _ALIASES.get(type_name, type_name)
    if type_name not in _GLOBS:
        raise Invalid(f"{quote(name)} is not a known file type.", f"Use a `glob`, or one of: {', '.join(_GLOBS)}.")
    return _GLOBS[type_name]
