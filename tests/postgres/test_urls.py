"""Addresses of databases: what a password's characters do to a URL is found before anything of it can be told."""

import subprocess
import sys

import pytest

from mcp_batteries.errors import Problem
from mcp_batteries.settings import load
from mcp_postgres.policy import Policy
from mcp_postgres.settings import Settings
from thinning import some

PRINTED = ("--print-config", "vscode")
CHECKED = ("--log-level", "debug", "--check")


def names(address: str) -> list[str]:
    return list(Policy(load(Settings, [address]), environment={}).databases)


@pytest.mark.parametrize("password", ["s3c/ret@x", "12/ret@x", "s3c?ret@x", "s3c#ret@x", "12/ret"])
@pytest.mark.parametrize("form", ["postgresql://shop:{}@database/shop", "mine=postgresql://shop:{}@database/shop"])
def test_a_password_that_ends_early_is_refused_and_not_told(form: str, password: str) -> None:
    with pytest.raises(Problem, match="PGPASSWORD") as refused:
        names(form.format(password))
    assert "ret" not in str(refused.value) and "s3c" not in str(refused.value)


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("postgresql://shop:s3c%2Fret%40x@database:5432/shop", "shop"),
        ("postgresql://u:p@[::1]:5432/db", "db"),
        ("postgresql://h1:1,h2:2/db?user=a@b", "db"),
        ("postgresql:///db", "db"),
        ("postgresql://u@h/my%40db", "my_db"),
        ("mine=postgresql://h/db", "mine"),
        ("host=h dbname=db", "db"),
        ("dbname='shop' options='-c a=b'", "shop"),
        ("postgresql://u:50%25ff%C3%A9@h/db", "db"),
        ("postgres://h/", "postgres"),
    ],
)
def test_other_addresses_are_taken(address: str, name: str) -> None:
    assert names(address) == [name]


def test_an_address_that_a_shell_divided_is_told_as_that() -> None:
    words = ["host=db.example.org", "password=secret", "dbname=shop"]
    with pytest.raises(Problem, match="`host=` and `password=` came as two databases") as refused:
        Policy(load(Settings, words))
    assert "in quotes" in str(refused.value) and "secret" not in str(refused.value)
    assert list(Policy(load(Settings, ["host=a dbname=shop", "other=host=b dbname=x"])).databases) == ["shop", "other"]


@pytest.mark.slow
@pytest.mark.parametrize("words", some([PRINTED, CHECKED], CHECKED))
def test_no_output_holds_a_password(words: tuple[str, ...]) -> None:
    url = "postgresql://reader:s3cretword@127.0.0.1:1/shop"
    forms = (
        url, f"shop={url}", f"{url}?foo=bar", url.replace(":1/", ":1x/"),
        "host=127.0.0.1 port=1 user=reader password=s3cretword dbname=shop",
    )  # fmt: skip
    command = [sys.executable, "-m", "mcp_postgres", *words]
    running = [
        subprocess.Popen([*command, form], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for form in forms
    ]
    for process, form in zip(running, forms, strict=True):
        said, _ = process.communicate(timeout=120)
        assert said and b"s3cretword" not in said, (form, said)
