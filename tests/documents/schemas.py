"""What each host accepts in its configuration file; strict on purpose.

Where a host ignores an unknown key, a documented entry with one is still a mistake of ours. Sources, read in 2026-11:

- VS Code, Claude Code, Codex, Copilot CLI, Gemini CLI, opencode: the programs themselves take the entries
  (`tests/e2e/hosts`); opencode also by the types of npm's `@opencode-ai/sdk` (`McpLocalConfig`, `McpRemoteConfig`).
- Zed: `ContextServerSettingsContent` of crates/settings_content: told apart by `command` or `url` (an older `source` is
  gone), `args` has no default.
- Goose: `ExtensionConfig` of crates/goose/src/agents/extension.rs: `sse` is kept for old files only and never starts.
- Cherry Studio: `McpServerConfigSchema` of its renderer, strict: an unknown key makes it refuse the whole import.
- Visual Studio, LM Studio, Cline, Continue, JetBrains, Kiro, Amp: their documentation; nobody here has run them.
- Windsurf, Cursor, Claude Desktop: their documentation; what reads it is not public.
"""

from typing import Any

from mcp_batteries.hosts import HOST_NAMES

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
WORDS: Schema = {"type": "array", "items": TEXT}
STRINGS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
URL: Schema = {"type": "string", "pattern": "^https?://[^/\\s]+/\\S+$"}
NUMBER: Schema = {"type": "number", "exclusiveMinimum": 0}
FLAG: Schema = {"type": "boolean"}


def closed(required: str, /, **properties: Schema) -> Schema:
    """An object with these keys and no others."""
    return {"type": "object", "required": required.split(), "properties": properties, "additionalProperties": False}


def named(entry: Schema) -> Schema:
    """An object of at least one entry, by the name of its server."""
    names = {"pattern": "^[A-Za-z0-9_-]{1,32}$"}
    return {"type": "object", "minProperties": 1, "propertyNames": names, "additionalProperties": entry}


def one_of(*kinds: Schema) -> Schema:
    return {"oneOf": list(kinds)}


def kind(*names: str) -> Schema:
    return {"enum": list(names)}


PLAIN = closed("command", command=TEXT, args=WORDS, env=STRINGS)

_VSCODE_LOCAL = closed(
    "type command",
    type=kind("stdio"),
    command=TEXT,
    args=WORDS,
    cwd=TEXT,
    env={"type": "object", "additionalProperties": {"type": ["string", "number", "null"]}},
    envFile=TEXT,
    sandboxEnabled=FLAG,
    dev={"type": "object"},
)
_VSCODE_REMOTE = closed("type url", type=kind("http", "sse"), url=URL, headers=STRINGS, oauth={"type": "object"})
VSCODE_SERVERS = named(one_of(_VSCODE_LOCAL, _VSCODE_REMOTE))
VSCODE_INPUT = closed(
    "type id description", type=kind("promptString"), id=TEXT, description=TEXT, password=FLAG, default=TEXT
)

# The form that most hosts take, and a new host until somebody describes it here more exactly.
_COMMON = closed("mcpServers", mcpServers=named(one_of(PLAIN, closed("url", url=URL, headers=STRINGS))))

HOSTS: dict[str, Schema] = dict.fromkeys(HOST_NAMES, _COMMON) | {
    "amp": {
        "type": "object",
        "required": ["amp.mcpServers"],
        "properties": {"amp.mcpServers": named(one_of(PLAIN, closed("url", url=URL, headers=STRINGS)))},
        "additionalProperties": False,
    },
    "vscode": closed(
        "servers",
        servers=VSCODE_SERVERS,
        inputs={"type": "array", "items": VSCODE_INPUT},
        sandbox={"type": "object"},
    ),
    "claude-desktop": closed("mcpServers", mcpServers=named(PLAIN)),
    "claude-code": closed(
        "mcpServers",
        mcpServers=named(
            one_of(
                closed("type command", type=kind("stdio"), command=TEXT, args=WORDS, env=STRINGS),
                closed("type url", type=kind("http", "sse", "ws"), url=URL, headers=STRINGS, headersHelper=TEXT),
            )
        ),
    ),
    "cursor": closed(
        "mcpServers",
        mcpServers=named(
            one_of(
                closed("command", type=kind("stdio"), command=TEXT, args=WORDS, env=STRINGS, envFile=TEXT),
                closed("url", url=URL, headers=STRINGS, auth={"type": "object"}),
            )
        ),
    ),
    "windsurf": closed(
        "mcpServers", mcpServers=named(one_of(PLAIN, closed("serverUrl", serverUrl=URL, headers=STRINGS)))
    ),
    "devin": closed(
        "mcpServers",
        mcpServers=named(one_of(PLAIN, closed("url", url=URL, headers=STRINGS, transport=kind("http", "sse")))),
    ),
    "antigravity": closed(
        "mcpServers", mcpServers=named(one_of(PLAIN, closed("serverUrl", serverUrl=URL, headers=STRINGS)))
    ),
    "copilot-cli": closed(
        "mcpServers",
        mcpServers=named(
            one_of(
                closed(
                    "type command args tools",
                    type=kind("local", "stdio"),
                    command=TEXT,
                    args=WORDS,
                    env=STRINGS,
                    tools=WORDS,
                    timeout=NUMBER,
                ),
                closed("type url tools", type=kind("http", "sse"), url=URL, headers=STRINGS, tools=WORDS),
            )
        ),
    ),
    "codex": closed(
        "mcp_servers",
        mcp_servers=named(
            one_of(
                closed(
                    "command",
                    command=TEXT,
                    args=WORDS,
                    env=STRINGS,
                    env_vars=WORDS,
                    cwd=TEXT,
                    required=FLAG,
                    enabled=FLAG,
                    enabled_tools=WORDS,
                    disabled_tools=WORDS,
                    startup_timeout_sec=NUMBER,
                    tool_timeout_sec=NUMBER,
                ),
                closed(
                    "url",
                    url=URL,
                    bearer_token_env_var=TEXT,
                    http_headers=STRINGS,
                    env_http_headers=STRINGS,
                    required=FLAG,
                    enabled=FLAG,
                    enabled_tools=WORDS,
                    startup_timeout_sec=NUMBER,
                ),
            )
        ),
    ),
    "gemini-cli": closed(
        "mcpServers",
        mcpServers=named(
            one_of(
                closed(
                    "command",
                    command=TEXT,
                    args=WORDS,
                    env=STRINGS,
                    cwd=TEXT,
                    timeout=NUMBER,
                    trust=FLAG,
                    includeTools=WORDS,
                    excludeTools=WORDS,
                ),
                closed("httpUrl", httpUrl=URL, headers=STRINGS, timeout=NUMBER, trust=FLAG),
                closed("url", url=URL, headers=STRINGS, timeout=NUMBER, trust=FLAG),
            )
        ),
    ),
    "zed": closed(
        "context_servers",
        context_servers=named(
            one_of(
                closed("command args", command=TEXT, args=WORDS, env=STRINGS, enabled=FLAG, timeout=NUMBER),
                closed("url", url=URL, headers=STRINGS, enabled=FLAG, timeout=NUMBER),
            )
        ),
    ),
    "goose": closed(
        "extensions",
        extensions=named(
            one_of(
                closed(
                    "name type cmd args enabled",
                    name=TEXT,
                    type=kind("stdio"),
                    cmd=TEXT,
                    args=WORDS,
                    enabled=FLAG,
                    envs=STRINGS,
                    env_keys=WORDS,
                    timeout=NUMBER,
                    description=TEXT,
                ),
                closed(
                    "name type uri enabled",
                    name=TEXT,
                    type=kind("streamable_http"),
                    uri=URL,
                    enabled=FLAG,
                    headers=STRINGS,
                    env_keys=WORDS,
                    timeout=NUMBER,
                    description=TEXT,
                ),
            )
        ),
    ),
    "cherry-studio": closed(
        "mcpServers",
        mcpServers=named(
            one_of(
                closed(
                    "name type isActive command",
                    name=TEXT,
                    type=kind("stdio"),
                    isActive=FLAG,
                    command=TEXT,
                    args=WORDS,
                    env=STRINGS,
                    description=TEXT,
                ),
                closed(
                    "name type isActive baseUrl",
                    name=TEXT,
                    type=kind("streamableHttp", "sse"),
                    isActive=FLAG,
                    baseUrl=URL,
                    headers=STRINGS,
                ),
            )
        ),
    ),
    "opencode": closed(
        "mcp",
        mcp=named(
            one_of(
                closed(
                    "type command",
                    type=kind("local"),
                    command={**WORDS, "minItems": 1},
                    environment=STRINGS,
                    enabled=FLAG,
                    timeout=NUMBER,
                ),
                closed("type url", type=kind("remote"), url=URL, headers=STRINGS, enabled=FLAG, oauth={}),
            )
        ),
        **{"$schema": TEXT},
    ),
    "visual-studio": closed(
        "servers",
        servers=named(one_of(_VSCODE_LOCAL, _VSCODE_REMOTE)),
        inputs={"type": "array", "items": VSCODE_INPUT},
    ),
    "cline": closed(
        "mcpServers",
        mcpServers=named(
            one_of(PLAIN, closed("type url", type=kind("streamableHttp", "sse"), url=URL, headers=STRINGS))
        ),
    ),
    "continue": closed(
        "mcpServers",
        mcpServers=named(one_of(PLAIN, closed("type url", type=kind("http", "sse"), url=URL, headers=STRINGS))),
    ),
}

DEV_CONTAINER = closed(
    "customizations",
    name=TEXT,
    image=TEXT,
    customizations=closed("vscode", vscode=closed("mcp", mcp=closed("servers", servers=VSCODE_SERVERS))),
)

assert set(HOSTS) == set(HOST_NAMES)
