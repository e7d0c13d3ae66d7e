"""Secrets drawn by the shapes that public rule sets of secret scanners know, and text that must stay readable.

The shapes are facts of the rule set of gitleaks (its 121 rules with a prefix of their own, and names from the other
101) and others known by their prefix: prefix, alphabet and length. In a template `{l8}` draws eight characters of the
alphabet `l`; values are random, so that none of them belongs to anybody.
"""

from __future__ import annotations

import base64
import re
import string
from collections.abc import Iterator
from random import Random

__all__ = ["FORMS", "NAMES", "ORDINARY", "SHAPES", "drawn", "named_values"]

_ALPHABETS = {
    "a": string.ascii_letters + string.digits,
    "h": "0123456789abcdef",
    "H": "0123456789abcdefABCDEF",
    "l": string.ascii_lowercase + string.digits,
    "L": string.ascii_letters,
    "U": string.ascii_uppercase + string.digits,
    "B": string.ascii_uppercase + "234567",
    "d": string.digits,
    "w": string.ascii_letters + string.digits + "_-",
    "b": string.ascii_letters + string.digits + "+/",
}
SHAPES = """
ghp_{a36} gho_{a36} ghu_{a36} ghs_{a36} ghr_{a36} github_pat_{a22}_{a59}
glpat-{w20} glpat-{w27}.{l2}{l7} gldt-{w20} glrt-{w20} glrt-t1_{w27}.{l9} glptt-{h40} glcbt-{a3}_{w20} glffct-{w20}
glft-{w20} glimt-{w25} glagent-{w50} glsoat-{w20} gloas-{w64} GR1348941{w20} _gitlab_session={l32}
npm_{a36} pypi-AgEIcHlwaS5vcmc{w70} rubygems_{h48} CLOJARS_{l60} AKCp{a69} cmVmd{a59} oy2{l43} dckr_pat_{w27} cio{a32}
AKIA{B16} ASIA{B16} ABIA{B16} ACCA{B16} A3TX{B16} ABSK{b112} bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t{b40}
sk_live_{a24} sk_test_{a24} rk_live_{a30} rk_prod_{a99} whsec_{b32} sk-{a20}T3BlbkFJ{a20} sk-proj-{w74}T3BlbkFJ{w74}
sk-svcacct-{w58}T3BlbkFJ{w58} sk-ant-api03-{w93}AA sk-ant-admin01-{w93}AA AIza{w35} GOCSPX-{w28} ya29.{w60}
hf_{L34} api_org_{L34} pplx-{a48} gsk_{a52} xai-{a80} r8_{a37} nvapi-{w64} lsv2_pt_{h32}_{h10} jina_{a60} tvly-{a32}
xoxb-{d12}-{d12}-{a24} xoxb-{d10}-{a24} xoxp-{d12}-{d12}-{d12}-{h32} xoxa-2-{a40} xoxr-{a40} xoxs-{d9}-{d9}-{d9}-{h10}
xoxe.xoxp-1-{U163} xoxe-1-{U146} xapp-1-{U11}-{d13}-{l64} https://hooks.slack.com/services/T{U8}/B{U10}/{a24}
https://discord.com/api/webhooks/{d18}/{w68} M{w23}.{w6}.{w38} {d9}:A{w34}
https://acme.webhook.office.com/webhookb2/{h8}-{h4}-{h4}-{h4}-{h12}@{h8}-{h4}-{h4}-{h4}-{h12}/IncomingWebhook/{h32}/{h8}
dop_v1_{h64} doo_v1_{h64} dor_v1_{h64} dapi{h32} dapi{h32}-2 hvs.{w90} hvb.{w138} hvr.{w90} {a14}.atlasv1.{w64}
pul-{h40} dp.pt.{a43} dp.st.prd.{a40} fo1_{w43} fm1a_{b120} fm2_{b120} pscale_tkn_{w43} pscale_oauth_{w43}
pscale_pw_{w43} LTAI{a20} AKID{a32} {a3}8Q~{w34} sha256~{w43} v1.0-{h24}-{h146} HRKU-AA{w58} 4b1d{a38}
t1.{w30}.{w86} AQVN{w36} YC{w38} mdb_sa_sk_{w40}
glsa_{a32}_{H8} glc_{b60} eyJrIjoi{a80} lin_api_{a40} lin_oauth_{h64} ntn_{d11}{a35} secret_{a43} PMAK-{h24}-{h34}
SG.{w22}.{w43} xkeysib-{h64}-{a16} key-{h32} pubkey-{h32} {h32}-us12 shpat_{h32} shpca_{h32} shppa_{h32} shpss_{h32}
sq0atp-{w22} sq0csp-{w43} EAAA{w60} EAAC{a120} {d16}|{w27} shippo_live_{h40} shippo_test_{h40} EZAK{a54} EZTK{a54}
duffel_live_{w43} duffel_test_{w43} dt0c01.{U24}.{U64} NRAK-{U27} NRII-{w32} NRJS-{h19} sntryu_{h64}
sntrys_eyJpYXQiO{b60}_{b43} ATATT3{w186} ATCTT3{w186} ATBB{a32} SK{h32} pat{a14}.{h64} pat.{w22}.{a24}.{a20}
sat.{w22}.{a24}.{a20} sgp_{h16}_{h40} sgp_local_{h40} squ_{h40} sqp_{h40} API-{U26} ico-{a32} fio-u-{w64}
ops_eyJ{b250} A3-{U6}-{U11}-{U5}-{U5}-{U5} A3-{U6}-{U6}-{U5}-{U5}-{U5}-{U5} p8e-{a32} s-s4t2ud-{h64} s-s4t2af-{h64}
sm_aat_{a16} sm_pat_{a16} sm_sat_{a16} {a6}_{a29}_mmk FLWSECK_TEST-{h12} FLWSECK_TEST-{h32}-X FLWPUBK_TEST-{h32}-X
dnkey-{w26}-{w52} sl.{w135} tk-us-{w48} AAAAAAAAAAAAAAAAAAAAAA{a90} live_{h35} test_{h35} test_pub_{h31} tfp_{w59}
figd_{w40} rdme_{l70} pnu_{a36} sc_{a10}.{a5}.acc_{l16}.{a64} AGE-SECRET-KEY-1{U58} pk.{l60}.{l22}
eyJ{w30}.eyJ{w60}.{w43} eyJ{w30}.{w40}.{w16}.{w60}.{w22} NFP nfp_{a36} CCIPAT_{a22}_{h40} phx_{a43} sbp_{h40}
""".replace("NFP ", "").split()
"""One for each rule with a shape of its own."""

_NAMES = """
DB_PASSWORD CLIENT_SECRET STRIPE_API_KEY AWS_SECRET_ACCESS_KEY PGPASSWORD MYSQL_PWD REDIS_AUTH SMTP_PASS JWT_SECRET
OPENAI_APIKEY AZURE_CLIENT_SECRET DATABASE_PASSWD SSH_PASSPHRASE ENCRYPTION_KEY SECRET_KEY_BASE NPM_TOKEN
ADAFRUIT_API_KEY ALGOLIA_API_KEY ASANA_CLIENT_SECRET ATLASSIAN_API_TOKEN BITTREX_SECRET_KEY CODECOV_TOKEN
COHERE_API_TOKEN CONFLUENT_SECRET_KEY DATADOG_ACCESS_TOKEN DROPBOX_ACCESS_TOKEN FASTLY_API_TOKEN HEROKU_API_KEY
MAILCHIMP_API_KEY NETLIFY_ACCESS_TOKEN OKTA_API_TOKEN PLAID_SECRET_KEY SENTRY_AUTH_TOKEN SNYK_TOKEN TRAVISCI_TOKEN
TWITTER_API_SECRET YANDEX_API_KEY ZENDESK_SECRET_KEY SONAR_LOGIN_TOKEN SUMOLOGIC_ACCESS_KEY VAULT_TOKEN
password passwd passphrase token secret api_key apikey apiKey accessToken access_token refresh_token clientSecret
client_secret privateKey dbPassword db.password spring.datasource.password user_password adminPassword authToken
auth-token x-api-key X-Api-Key X-Auth-Token AccountKey SharedAccessKey aws_secret_access_key credential secretKey
signing_key master-key webhookSecret bot_token _authToken github_token GITLAB-TOKEN secret_id storage_key
"""
NAMES = _NAMES.split()

FORMS = {
    "environment": "{NAME}={value}",
    "export": "export {NAME}={value}",
    "quoted environment": "{NAME}='{value}'",
    "Dockerfile": "ENV {NAME} {value}",
    "compose": "      - {NAME}={value}",
    "PowerShell": '$env:{NAME} = "{value}"',
    "YAML": "{name}: {value}",
    "YAML quoted": '  {name}: "{value}"',
    "YAML block": "{name}: |\n    {value}\nnext: 1",
    "TOML": '{name} = "{value}"',
    "INI": "{name} = {value}",
    "properties": "{name}={value}",
    "JSON": '{{"{name}": "{value}", "other": 1}}',
    "JSON compact": '{{"a":1,"{name}":"{value}"}}',
    "JSON in JSON": '{{\\"{name}\\": \\"{value}\\"}}',
    "Python": 'settings["{name}"] = "{value}"',
    "Python typed": '{name}: str | None = "{value}"',
    "Python call": 'connect(host="h", {name}="{value}")',
    "JavaScript": "const config = {{ {name}: '{value}' }};",
    "TypeScript typed": 'const {name}: string = "{value}";',
    "Go": '{name} := "{value}"',
    "PHP": "'{name}' => '{value}',",
    "XML": "<{name}>{value}</{name}>",
    "XML attribute": '<add key="{name}" value="{value}"/>',
    "Kubernetes": "- name: {NAME}\n  value: {value}",
    "connection string": "Server=tcp:h;User=u;{name}={value};Encrypt=true",
    "query": "https://example.org/x?a=1&{name}={value}&b=2",
    "flag": "program --{name} {value} --verbose",
    "flag with sign": "program --{name}={value}",
    "header": "{name}: {value}",
    "log line": "INFO login with {name}={value} from 10.0.0.1",
    "Markdown": "Set `{name}` to: `{name}={value}`.",
}
"""Ways to give a value to a name."""

_FIXED_FORMS = (
    "Authorization: Bearer {value}",
    "authorization: Basic {value}",
    "curl -H 'Authorization: token {value}' https://example.org",
    "curl -u someone:{value} https://example.org",
    "Cookie: session={value}; theme=dark",
    "postgresql://someone:{value}@db.example.org:5432/shop",
    "https://{value}@example.org/a.git",
    "redis://:{value}@127.0.0.1/0",
    "CREATE ROLE app LOGIN PASSWORD '{value}';",
    "CREATE USER 'app'@'%' IDENTIFIED BY '{value}';",
    "machine example.org login someone password {value}",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={value};EndpointSuffix=core.windows.net",
    "//registry.npmjs.org/:_authToken={value}",
    "bearer {value}",
    "https://a.blob.core.windows.net/c/b?sv=2022-11-02&sig={value}&se=2027",
)


def drawn(template: str, dice: Random) -> str:
    """Return a value of the shape `template`."""

    def draw(found: re.Match[str]) -> str:
        return "".join(dice.choice(_ALPHABETS[found[1]]) for _ in range(int(found[2])))

    return re.sub(r"\{(\w)(\d+)\}", draw, template)


def private_keys(dice: Random) -> Iterator[tuple[str, str]]:
    """Yield blocks of private keys, each with a line that must not be left."""
    for kind in ("RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "EC PRIVATE KEY", "PGP PRIVATE KEY BLOCK"):
        lines = [base64.b64encode(dice.randbytes(48)).decode() for _ in range(12)]
        whole = "\n".join((f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----"))
        yield whole, lines[5]
        yield whole.replace("\n", "\\n"), lines[5]
        yield whole.partition(lines[8])[0], lines[5]


def named_values(dice: Random) -> Iterator[tuple[str, str, str]]:
    """Yield a form, a text, and the value in it that must not be left."""
    values = ("{l32}", "{h40}", "{a20}", "{w24}", "{b40}==", "{L6}{d2}", "{d8}", "Tr0ub4dor&3", "hunter2", "s3cr3t!")
    for form, template in FORMS.items():
        for name in NAMES:
            value = drawn(dice.choice(values), dice)
            if form in ("XML", "query", "XML attribute"):
                value = drawn("{a24}", dice)
            if form == "flag" and value.startswith("-"):  # A program would take that for another option.
                value = "a" + value[1:]
            yield form, template.format(name=name, NAME=re.sub(r"[^A-Z0-9]+", "_", name.upper()), value=value), value
    for template in _FIXED_FORMS:
        for _ in range(5):
            value = drawn("{a24}", dice)
            yield template, template.format(value=value), value


ORDINARY = [
    "password: required",
    "Password: must be at least twelve characters long.",
    "token: string",
    "token?: string;",
    "interface Session { token: string; secret?: string | null; apiKey: ApiKey }",
    "def login(user: str, password: str) -> Token:",
    "def connect(host: str, password: str | None = None, token: AccessToken = None) -> None: ...",
    "password = getpass.getpass()",
    "token = os.environ['TOKEN']",
    "token = self.token",
    "secret = settings.secret",
    "password=password, token=token",
    "const token = await getToken(user);",
    "apiKey: process.env.API_KEY,",
    "if not password: raise ValueError",
    "max_tokens: 4096",
    '{"max_tokens": 4096, "prompt_tokens": 12, "total_tokens": 99}',
    '{"progressToken": "p1", "nextPageToken": "CAUQAA"}',
    '{"type": "object", "properties": {"password": {"type": "string", "description": "The password."}}}',
    "the author: Jane Austen",
    "authors = ['A. Writer']",
    "auth: none",
    "auth: basic",
    "AUTH_ENABLED=true",
    "DB_PASSWORD=${DB_PASSWORD}",
    "password: {{ vault.password }}",
    "password: <your password>",
    "PASSWORD_FILE=/run/secrets/db",
    "token_count = 17",
    "tokenizer: gpt2",
    "secretary: Ms Smith",
    "The token is refreshed once an hour; a secret never leaves the process.",
    "passwordless login with keys: see ssh-keygen(1)",
    "commit 4d577729e1f0c2b3a4d5e6f708192a3b4c5d6e7f",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
    "id: 123e4567-e89b-12d3-a456-426614174000",
    "/usr/share/doc/python3.11/README.rst",
    r"C:\Users\someone\Documents\report-2026-11-28.docx",
    "https://example.org:8443/a/b?page=2&sort=name#top",
    "https://github.com/octo/hello/blob/main/src/token.py#L10-L20",
    "http://localhost:8000/@someone/posts",
    "git@github.com:octo/hello.git",
    "someone@example.org",
    "PATH=/usr/local/bin:/usr/bin:/bin",
    "PWD=/home/someone/project",
    "x-request-id: 7f3e2a10-aaaa-bbbb-cccc-000000000000",
    "keyboard: qwerty; monkey = 3; turkey: roasted",
    "primary_key: id, foreign_key = customer_id",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJk2d3 someone@host",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYD\n-----END CERTIFICATE-----",
    "SELECT password_hash IS NULL FROM users WHERE token IS NOT NULL",
    "Bearer authentication is required; send a bearer token.",
    "Cookies: we bake them at 180 degrees.",
    "The default credential provider chain is tried first.",
    "0123456789abcdef0123456789abcdef01234567",
    "class TokenBucket(Generic[T]): rate: float = 1.0",
]
"""Text that has no secret, and must come out as it went in."""
