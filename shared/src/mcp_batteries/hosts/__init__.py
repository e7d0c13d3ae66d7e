"""The hosts for which we write entries: one TOML file a host, named as `--install` and `--print-config` take it.

A new host is one new file here. Its sources are the host's own documentation. Every key:

- `title`: its name for a person. `shows`: what of a server it shows. `restart`: what makes it read its file again.
- `unix_socket`: it connects to Unix sockets. `asks_inputs`: an entry can ask for values (`inputs`).
- `install_link`: where it keeps no file, the beginning of a link that ends with the entry in base64.
- `add_command`: its own command that adds a server.
- `location`: `words` say where the entry goes, on Windows `windows_words`. Its file is `path`, or one for each of
  `windows`, `macos` and `linux`; without any, we can write none. `windows_package` is the pattern of the package
  (MSIX) for which Windows keeps `%APPDATA%/NAME` elsewhere. `folder` has the `variable` by which a user gives the host
  another folder, as for a second account, and the `path` of the file in it. `workspace` is its file in the folder of a
  project. `reads_jsonc` says that it reads these files with this ending too.
- `format`: the `language` of the file (`json`, `toml`, `yaml`); for JSON, whether the host takes `comments` and
  `trailing_commas`. We take both for granted where a host says nothing, and write neither.
- `variables`: `form` and `optional_form` make the host take a value from its user; the other hosts want the value
  itself. `replaced` is a regular expression of what it replaces anywhere in an entry; no host can be told not to.
- `entry`: servers are in `container`, each as `start` (the host starts it), `http` or `sse` (it connects). `$name`,
  `$program`, `$arguments`, `$command` (both), `$environment`, `$variables` (its names) and `$url` stand for values.
  A key whose value would be an empty environment is left out. `token` is added to `http` and `sse` where the server
  asks for a token: `$token` stands for it, in the form of `variables` unless `token_literal` says that the host
  replaces none there, and `$token_variable` for the name of its variable. It is missing where the host documents none.
- `refusals`: a sentence for `http` or `sse`, if the host takes no such server.
- `page`: `paragraphs` for the page of this host.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["HOST_FOLDER", "HOST_NAMES"]

HOST_FOLDER = Path(__file__).parent

# Every start of a server needs the names, for its options; only those who write an entry need what the files say.
HOST_NAMES = tuple(sorted(name.removesuffix(".toml") for name in os.listdir(HOST_FOLDER) if name.endswith(".toml")))
