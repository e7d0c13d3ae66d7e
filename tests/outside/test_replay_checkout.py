"""The command that replays others' recordings reads their forms, and notices what differs."""

import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from github_server.world import issue, sample
from outside import replay_checkout
from outside.replay_checkout import exchanges_in, replayed

REPO = {**sample("repos/get"), "full_name": "octo/app"}


def recorded(folder: Path) -> None:
    """One answer as WireMock keeps it, two as nock does, and files that are neither."""
    for name in ("mappings", "__files"):
        (folder / "java" / name).mkdir(parents=True)
    (folder / "java/__files/1-repo.json").write_text(json.dumps(REPO), "utf-8")
    mapping: dict[str, Any] = {
        "request": {"url": "/repos/octo/app", "method": "GET"},
        "response": {"status": 200, "bodyFileName": "1-repo.json",
                     "headers": {"X-RateLimit-Reset": "{{now}}", "Content-Type": "application/json"}},
    }  # fmt: skip
    (folder / "java/mappings/1-repo.json").write_text(json.dumps(mapping), "utf-8")
    said = {"scope": "https://api.github.com:443", "method": "get", "status": 200, "headers": {"etag": "x"}}
    nock = [
        {**said, "path": "/repos/octo/app/issues/3", "response": issue(3)},
        {**said, "path": "/repos/octo/app/labels", "response": [{"name": "bug", "color": "ff0000"}]},
    ]
    (folder / "fixture.json").write_text(json.dumps(nock), "utf-8")
    (folder / "package.json").write_text('{"name": "x"}', "utf-8")
    (folder / "broken.json").write_text("{", "utf-8")


@pytest.mark.anyio
async def test_recordings_of_others_are_replayed(tmp_path: Path) -> None:
    recorded(tmp_path)
    exchanges = list(exchanges_in(tmp_path))
    assert [(item.verb, item.origin, item.path) for item in exchanges] == [
        ("GET", "https://api.github.com", "/repos/octo/app/issues/3"),
        ("GET", "https://api.github.com", "/repos/octo/app/labels"),
        ("GET", "https://api.github.com", "/repos/octo/app"),
    ]
    assert exchanges[-1].headers == {"content-type": "application/json"}
    read, complaints = await replayed(exchanges)
    assert read.total() == 3 and not read["of no tool, or no answer"] and complaints == []


_HANDLERS = """
func TestIssues(t *testing.T) {
	mux.HandleFunc("/repos/octo/app/issues/3", func(w http.ResponseWriter, r *http.Request) {
		testMethod(t, r, "GET")
		fmt.Fprint(w, `ISSUE`)
	})
	mux.HandleFunc("/repos/octo/app/issues", func(w http.ResponseWriter, r *http.Request) {
		testMethod(t, r, "POST")
		fmt.Fprint(w, `{}`)
	})
	mux.HandleFunc("/repos/octo/app/labels", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "[{\\"name\\": \\"bug\\", \\"color\\": \\"ff0000\\"}]")
	})
	reg.Register(
		httpmock.REST("GET", "repos/octo/app"),
		httpmock.FileResponse("./fixtures/repo.json"))
	reg.Register(
		httpmock.REST("GET", "gists/1"),
		httpmock.StatusStringResponse(200, `{"id": 1}`))
	reg.Register(httpmock.REST("GET", "repos/octo/app/tags"), httpmock.StatusStringResponse(404, `{}`))
}
"""


@pytest.mark.anyio
async def test_what_tests_in_go_answer_is_replayed(tmp_path: Path) -> None:
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "fixtures/repo.json").write_text(json.dumps(REPO), "utf-8")
    (tmp_path / "issues_test.go").write_text(_HANDLERS.replace("ISSUE", json.dumps(issue(3))), "utf-8")
    exchanges = list(exchanges_in(tmp_path))
    assert [item.path for item in exchanges] == [
        "/repos/octo/app/issues/3", "/repos/octo/app/labels", "/repos/octo/app", "/gists/1",
    ]  # fmt: skip
    read, complaints = await replayed(exchanges)
    # A part of an object, which their tests are content with, is nobody's mistake.
    assert read["written by hand and incomplete"] == 1 and read.total() == 4 and complaints == []


@pytest.mark.anyio
async def test_what_differs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(tmp_path)
    plain = replay_checkout.different
    monkeypatch.setattr(replay_checkout, "different", lambda kind, name, shown, one: plain(kind, name, {}, one))
    _, complaints = await replayed(list(exchanges_in(tmp_path)))
    assert complaints


@pytest.mark.weekly
@pytest.mark.process
@pytest.mark.anyio
async def test_what_octokit_recorded_is_read_alike(tmp_path: Path) -> None:
    """The package comes from npm."""
    command = ["npm", "pack", "--silent", "--pack-destination", str(tmp_path), "@octokit/fixtures@23.1.2"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with tarfile.open(next(tmp_path.glob("*.tgz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    read, complaints = await replayed(list(exchanges_in(tmp_path)))
    assert complaints == [] and read.total() - read["of no tool, or no answer"] >= 15
