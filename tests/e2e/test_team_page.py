"""The page for a team says what works: each of its files and commands is taken from it and tried."""

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import Any, cast

import anyio
import anyio.to_thread
import httpx2
import pytest
import yaml
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from e2e.services import free_port
from mcp_batteries.testing.wire import MODERN, HttpWire
from shared.certificates import certificate
from shared.http_subject import Subject, running

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="the page is about systemd"),
]

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
BLOCKS = dict(_BLOCK.findall((ROOT / "docs" / "team.md").read_text("utf-8")))
UNIT = BLOCKS["/etc/systemd/system/mcp-fs.service"]
RULES = yaml.safe_load(BLOCKS["/etc/prometheus/mcp-rules.yml"])
BOARD = json.loads((ROOT / "deploy" / "grafana.json").read_text("utf-8"))
# What Prometheus itself adds, and the words of its language.
NO_METRICS = {"up", "job", "sum", "by", "rate", "le", "instance", "tool", "topk", "outcome", "status", "method"}


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(UNIT.replace("\\\n", " "))
    return parser


@dataclass
class Team:
    """The server of the page, with its paths below a folder."""

    folder: Path
    port: int
    tokens: dict[str, str]
    subject: Subject

    def moved(self, text: str) -> str:
        """`text` of the page with the paths and the port of this machine."""
        for path in ("/etc/", "/srv/", "/var/log/"):
            text = text.replace(path, f"{self.folder}{path}")
        return text.replace("127.0.0.1:8000", f"127.0.0.1:{self.port}").replace("--port 8000", f"--port {self.port}")


def shims(folder: Path, **programs: str) -> dict[str, str]:
    """The environment in which commands of the page run: `sudo` is nobody, other programs as they are given here."""
    folder.mkdir(exist_ok=True)
    for name, command in {"sudo": 'exec "$@"', **programs}.items():
        (folder / name).write_text(f"#!/bin/sh\n{command}\n", "utf-8")
        (folder / name).chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.fixture(scope="module")
async def team(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Team]:
    folder = tmp_path_factory.mktemp("team")
    for name in ("etc", "srv/files", "var/log/mcp"):
        (folder / name).mkdir(parents=True)
    (folder / "srv/files/notes.txt").write_text("one\n", "utf-8")
    command = shlex.join([sys.executable, "-m", "mcp_fs"])
    env = shims(folder / "bin", **{"mcp-fs": f'exec {command} "$@"'})
    script = BLOCKS["tokens"].replace("/etc/", f"{folder}/etc/").replace("-o root -g mcp ", "")
    made = subprocess.run(["sh", "-ec", script], env=env, check=True, text=True, capture_output=True)
    tokens = re.findall(r"The token, shown this once: (\S+)", made.stderr)
    port = free_port()
    server = Team(folder, port, dict(zip(("alice", "bob", "scraper"), tokens, strict=True)), None)  # type: ignore[arg-type]
    words = shlex.split(server.moved(unit()["Service"]["ExecStart"]))
    assert words.pop(0) == "/usr/local/bin/mcp-fs"
    async with running([sys.executable, "-m", "mcp_fs", *words]) as server.subject:
        yield server


async def test_each_person_may_do_what_their_line_says(team: Team) -> None:
    lines = (team.folder / "etc/mcp/tokens").read_text("utf-8").splitlines()
    assert [line.split()[0] for line in lines] == ["alice", "bob", "scraper"]
    assert not any(token in line for token in team.tokens.values() for line in lines)
    listed: dict[str, set[str]] = {}
    for name in ("alice", "bob"):
        headers = {"authorization": f"Bearer {team.tokens[name]}"}
        async with HttpWire(f"http://127.0.0.1:{team.port}/mcp", revision=MODERN, headers=headers) as wire:
            listed[name] = {tool["name"] for tool in (await wire.request("tools/list"))["tools"]}
            assert "notes.txt" in str(await wire.call("list_directory", path="."))
    assert "create_directory" in listed["alice"] - listed["bob"]
    assert "list_directory" in (team.folder / "var/log/mcp/audit.jsonl").read_text("utf-8")


@contextmanager
def nginx(team: Team, port: int, *, more: str = "", scheme: str = "https") -> Generator[None]:
    """nginx with the file of the page, on `port`, and `more` locations."""
    program = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed (Debian's package `nginx-light`)")
    folder = team.folder / "etc/nginx"
    folder.mkdir(exist_ok=True)
    certificate(folder, "files.example.org")
    shutil.copy(folder / "cert.pem", folder / "files.example.org.crt")
    shutil.copy(folder / "key.pem", folder / "files.example.org.key")
    site = team.moved(BLOCKS["/etc/nginx/conf.d/mcp.conf"]).replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl")
    site = site.replace("    # For the scraper", f"{more}\n    # For the scraper")
    if scheme == "http":
        site = site.replace(f"{port} ssl", str(port))
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"pid {folder}/pid; error_log stderr; events {{}} http {{ access_log off; {temporary}\n{site}\n}}", "utf-8"
    )
    words = [program, "-e", "stderr", "-c", str(folder / "nginx.conf"), "-g", "daemon off;"]
    tested = subprocess.run([*words[:-2], "-t"], check=False, stderr=PIPE, text=True)
    assert tested.returncode == 0, tested.stderr
    with subprocess.Popen(words, stdin=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


async def test_curl_proves_it_through_nginx(team: Team) -> None:
    port = free_port()
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("curl is not installed")
    with nginx(team, port):
        # The certificate is nobody's, and the name is no machine's.
        direct = f'exec {curl} -k --retry 20 --retry-connrefused --resolve files.example.org:{port}:127.0.0.1 "$@"'
        env = {**shims(team.folder / "bin", curl=direct), "TOKEN": team.tokens["bob"]}
        script = BLOCKS["prove"].replace("https://files.example.org/", f"https://files.example.org:{port}/")
        proved = await anyio.to_thread.run_sync(
            lambda: subprocess.run(["bash", "-ec", script], env=env, check=False, text=True, capture_output=True)
        )
        assert proved.returncode == 0, proved.stderr
        ready, challenge, *tools = proved.stdout.splitlines()
        assert ready == "200" and challenge.lower().startswith("www-authenticate: bearer")
        assert '"name":"read_text"' in tools and '"name":"write_file"' not in tools
        async with httpx2.AsyncClient(verify=False, trust_env=False) as client:
            hidden = await client.get(f"https://127.0.0.1:{port}/metrics")
        assert hidden.status_code == 404


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_streams_and_sessions_pass_nginx_below_a_path(team: Team, revision: str) -> None:
    port = free_port()
    note = team.folder / "srv/files/notes.txt"
    headers = {"authorization": f"Bearer {team.tokens['alice']}"}
    with nginx(team, port, more=BLOCKS["several servers"], scheme="http"):
        await listens(port)
        for path in ("/mcp", "/files/mcp"):
            async with HttpWire(f"http://127.0.0.1:{port}{path}", revision=revision, headers=headers) as wire:
                await wire.open()
                await wire.subscribe(note.as_uri())
                note.write_text(f"{path}\n", "utf-8")
                await wire.updated(note.as_uri())
                assert path in str(await wire.call("read_text", path="notes.txt"))


async def listens(port: int) -> None:
    """Wait until somebody listens on `port`."""
    with anyio.fail_after(30):
        while True:
            try:
                await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
                return
            except OSError:
                await anyio.sleep(0.02)


def test_the_unit_ends_as_the_server_does() -> None:
    service = unit()["Service"]
    words = service["ExecStart"].split()
    drain = int(words[words.index("--drain-seconds") + 1])
    assert service["SuccessExitStatus"] == "143"
    assert int(service["TimeoutStopSec"]) > drain + 1


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd is not installed")
    file = tmp_path / "mcp-fs.service"

    def complaints(text: str) -> list[str]:
        file.write_text(text.replace("/usr/local/bin/mcp-fs", sys.executable), "utf-8")
        checked = subprocess.run([program, "verify", str(file)], check=False, text=True, capture_output=True)
        return [line for line in checked.stderr.splitlines() if "mcp-fs.service" in line]

    assert complaints(UNIT) == []
    assert "'ProtectSytem'" in str(complaints(UNIT.replace("ProtectSystem", "ProtectSytem")))


def metrics_in(expression: str) -> set[str]:
    """The names of metrics in an expression of Prometheus."""
    without_labels = re.sub(r"\{[^}]*\}|\[[^]]*\]|\b(?:by|without) \([^)]*\)", "", expression)
    names = set(re.findall(r"\b[a-z_]+\b(?!\s*\()", without_labels))
    return names - NO_METRICS


async def test_rules_and_board_ask_for_figures_that_there_are(team: Team) -> None:
    async with httpx2.AsyncClient(trust_env=False) as client:
        for name, status in (("bob", 403), ("scraper", 200)):
            headers = {"authorization": f"Bearer {team.tokens[name]}"}
            answer = await client.get(f"http://127.0.0.1:{team.port}/metrics", headers=headers)
            assert answer.status_code == status
    known = set(re.findall(r"^([a-z_]+)[{ ]", answer.text, re.MULTILINE))
    declared = set(re.findall(r"^# TYPE ([a-z_]+) ", answer.text, re.MULTILINE))
    known |= declared | {f"{name}_total" for name in declared} | {f"{name}_bucket" for name in declared}
    expressions = [rule["expr"] for group in RULES["groups"] for rule in group["rules"]]
    expressions += [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
    for expression in expressions:
        assert metrics_in(expression) <= known, expression
    assert metrics_in(expressions[-1]) == {"process_open_fds", "process_max_fds"}
    asked = set[str]().union(*map(metrics_in, expressions))
    assert {"mcp_requests_total", "mcp_request_seconds_bucket", "mcp_http_responses_total", "mcp_sessions"} <= asked


def test_prometheus_finds_nothing_wrong_with_its_files(tmp_path: Path) -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed (Debian's package `prometheus`)")
    texts: dict[str, Any] = {}
    for name in ("prometheus.yml", "mcp-rules.yml"):
        texts[name] = BLOCKS[f"/etc/prometheus/{name}"].replace("/etc/prometheus", str(tmp_path))
        (tmp_path / name).write_text(texts[name], "utf-8")
    (tmp_path / "mcp-token").write_text("token", "utf-8")
    checked = subprocess.run(
        [program, "check", "config", str(tmp_path / "prometheus.yml")], check=False, text=True, capture_output=True
    )
    assert checked.returncode == 0 and "5 rules found" in checked.stdout, checked.stdout + checked.stderr


@contextmanager
def prometheus(team: Team, folder: Path) -> Generator[str]:
    """Prometheus with the files of the page, which looks at the server every second: its URL."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("prometheus is not installed (Debian's package `prometheus`)")
    for name in ("prometheus.yml", "mcp-rules.yml"):
        text = team.moved(BLOCKS[f"/etc/prometheus/{name}"]).replace(f"{team.folder}/etc/prometheus", str(folder))
        (folder / name).write_text(text, "utf-8")
    with (folder / "prometheus.yml").open("a", encoding="utf-8") as config:
        config.write("global: { scrape_interval: 1s, scrape_timeout: 1s }\n")
    (folder / "mcp-token").write_text(team.tokens["scraper"], "utf-8")
    address = f"127.0.0.1:{free_port()}"
    files = ["--config.file", str(folder / "prometheus.yml"), "--storage.tsdb.path", str(folder / "data")]
    with subprocess.Popen([program, *files, "--web.listen-address", address, "--log.level", "error"]) as process:
        try:
            yield f"http://{address}"
        finally:
            process.terminate()


async def test_each_query_of_the_board_has_a_value(team: Team, tmp_path: Path) -> None:
    (variable,) = (item for item in BOARD["templating"]["list"] if item["type"] == "query")
    queries = [(target["expr"], target["legendFormat"]) for panel in BOARD["panels"] for target in panel["targets"]]
    with prometheus(team, tmp_path) as url:
        async with httpx2.AsyncClient(base_url=url, trust_env=False) as client, following(team) as wire:

            async def values(query: str, legend: str) -> list[float]:
                """The values of a query that have all that their legend names."""
                answer = await client.get("/api/v1/query", params={"query": query.replace("$instance", ".+")})
                assert answer.status_code == 200, answer.text
                labels = set(re.findall(r"\{\{(\w+)\}\}", legend))
                found = answer.json()["data"]["result"]
                return [float(item["value"][1]) for item in found if labels <= set(item["metric"])]

            await listens(int(url.rpartition(":")[2]))
            with anyio.fail_after(60):
                empty = queries
                while empty:
                    # Counted while Prometheus looks, else there is no rate: a call, and a refusal.
                    await wire.call("read_text", path="notes.txt")
                    assert (await client.post(f"http://127.0.0.1:{team.port}/mcp")).status_code == 401
                    empty = [query for query in queries if not any(value > 0 for value in await values(*query))]
            name, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]).groups()  # type: ignore[union-attr]
            answer = await client.get(f"/api/v1/label/{label}/values", params={"match[]": name})
            assert answer.json()["data"] == [f"127.0.0.1:{team.port}"]


@asynccontextmanager
async def following(team: Team) -> AsyncGenerator[HttpWire]:
    """A client of each era that holds what the server counts: a session with a subscription, and a stream."""
    headers = {"authorization": f"Bearer {team.tokens['alice']}"}
    url = f"http://127.0.0.1:{team.port}/mcp"
    async with (
        HttpWire(url, revision="2025-11-25", headers=headers) as older,
        HttpWire(url, revision=MODERN, headers=headers) as wire,
    ):
        await older.open()
        await older.subscribe((team.folder / "srv/files/notes.txt").as_uri())
        await wire.listen({"toolsListChanged": True})
        yield wire


# For each alert, series that must fire it: what happens in each of 60 minutes.
_ALARMING = {
    "McpDown": {'up{job="mcp", instance="a"}': "0x60"},
    "McpFails": {'mcp_requests_total{instance="a", outcome="-32603"}': "0+60x60"},
    "McpSlow": {
        f'mcp_request_seconds_bucket{{instance="a", tool="t", method="tools/call", le="{le}"}}': f"0+{count}x60"
        for le, count in (("10", 9), ("30", 10), ("+Inf", 10))
    },
    "McpRefuses": {'mcp_http_responses_total{instance="a", status="401"}': "0+120x60"},
    "McpDescriptors": {
        'process_open_fds{job="mcp", instance="a"}': "900x60", 'process_max_fds{job="mcp", instance="a"}': "1024x60"
    },
}  # fmt: skip


def test_each_alert_fires_when_it_should_and_no_other(tmp_path: Path) -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed (Debian's package `prometheus`)")
    assert [rule["alert"] for rule in RULES["groups"][0]["rules"]] == list(_ALARMING)
    (tmp_path / "rules.yml").write_text(BLOCKS["/etc/prometheus/mcp-rules.yml"], "utf-8")
    cases = [
        {
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "promql_expr_test": [
                {
                    "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                    "eval_time": "50m",
                    "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1}],
                }
            ],
        }
        for alert, series in _ALARMING.items()
    ]
    cases.append({"interval": "1m", "promql_expr_test": [{"expr": "ALERTS", "eval_time": "50m", "exp_samples": []}]})
    (tmp_path / "cases.yml").write_text(yaml.safe_dump({"rule_files": ["rules.yml"], "tests": cases}), "utf-8")
    words = [program, "test", "rules", "cases.yml"]
    tested = subprocess.run(words, check=False, cwd=tmp_path, text=True, capture_output=True)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def lost_keys(written: Any, known: Any, place: str = "") -> list[str]:
    """Where `known` has not what was `written`."""
    if isinstance(written, dict) and isinstance(known, dict):
        lost: list[str] = []
        for key, value in cast("dict[str, Any]", written).items():
            lost += lost_keys(value, cast("dict[str, Any]", known).get(key), f"{place}.{key}")
        return lost
    if isinstance(written, list) and isinstance(known, list):
        lost = []
        pairs = zip(cast("list[Any]", written), cast("list[Any]", known), strict=True)
        for number, (item, other) in enumerate(pairs):
            lost += lost_keys(item, other, f"{place}[{number}]")
        return lost
    return [] if written == known else [place]


def test_the_board_has_only_what_the_schemas_of_grafana_have() -> None:
    """A key that Grafana does not know, or a query of another form, is lost on the way through its own types."""
    plugins.register_default_plugins()

    def round_trip(board: Any) -> Any:
        return json.loads(JSONEncoder().encode(Dashboard.from_json(board)))

    assert lost_keys(BOARD, round_trip(BOARD)) == []
    spoilt = json.loads(json.dumps(BOARD))
    spoilt["panels"][0]["targets"][0]["expresion"] = "up"
    assert lost_keys(spoilt, round_trip(spoilt)) == [".panels[0].targets[0].expresion"]


def test_the_board_is_one_that_grafana_takes() -> None:
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert len(ids) == len(set(ids)) and BOARD["uid"] and BOARD["schemaVersion"] >= 36
    variables = {variable["name"] for variable in BOARD["templating"]["list"]}
    for panel in BOARD["panels"]:
        assert panel["targets"] and panel["datasource"]["uid"] == "${source}"
        for target in panel["targets"]:
            assert set(re.findall(r"\$(\w+)", target["expr"])) <= variables


def test_the_server_is_installed_as_the_page_says(tmp_path: Path) -> None:
    """Without its user, whom only root can make, and into a folder of this test."""
    script = "\n".join(line for line in BLOCKS["install"].splitlines() if "useradd" not in line)
    for path in ("/opt/mcp", "/usr/local/bin"):
        assert path in script
        script = script.replace(path, f"{tmp_path}{path}")
    env = {name: value for name, value in shims(tmp_path / "bin").items() if name != "VIRTUAL_ENV"}
    subprocess.run(["sh", "-ec", script], env=env, cwd=ROOT, check=True, capture_output=True)
    program = tmp_path / "usr/local/bin/mcp-fs"
    printed = subprocess.run([str(program), "--version"], check=True, text=True, stdout=PIPE)
    assert printed.stdout.startswith("mcp-fs ")
