"""Creates, changes and removes labels and milestones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote as percent

from mcp_batteries.errors import Invalid, quote
from mcp_github.client.api import Api
from mcp_github.listing.columns import LABEL, MILESTONE
from mcp_github.models import Done
from mcp_github.policy import WriteRepo

__all__ = ["Labels"]


@dataclass(frozen=True)
class Labels:
    api: Api

    async def create(self, repo: WriteRepo, body: dict[str, Any]) -> Done:
        what = f"label {quote(str(body['name']))} of `{repo.full}`"
        made = await self.api.write("POST", f"{repo.path}/labels", what, body, repo=repo)
        return Done(done=f"Created label {made.data['name']}.", data=LABEL.record(made.data))

    async def edit(self, repo: WriteRepo, name: str, changes: dict[str, Any]) -> Done:
        made = await self.api.write("PATCH", self._path(repo, name), self._what(repo, name), changes, repo=repo)
        return Done(done=f"Changed label {made.data['name']}.", data=LABEL.record(made.data))

    async def delete(self, repo: WriteRepo, name: str) -> Done:
        await self.api.write("DELETE", self._path(repo, name), self._what(repo, name), repo=repo)
        return Done(done=f"Deleted label {name}.")

    async def write_milestone(self, repo: WriteRepo, number: int | None, body: dict[str, Any]) -> Done:
        """A new milestone, or a change of the one with `number`."""
        where, what = f"{repo.path}/milestones", f"the milestones of `{repo.full}`"
        if number is None:
            if "title" not in body:
                raise Invalid("A new milestone needs a `title`.")
            made = await self.api.write("POST", where, what, body, repo=repo)
        else:
            what = f"milestone `{number}` of `{repo.full}`"
            made = await self.api.write("PATCH", f"{where}/{number}", what, body, repo=repo)
        done = f"{'Created' if number is None else 'Changed'} milestone {made.data['number']}."
        return Done(done=done, url=made.data.get("html_url"), data=MILESTONE.record(made.data))

    @staticmethod
    def _path(repo: WriteRepo, name: str) -> str:
        if name in (".", ".."):
            raise Invalid(f"{quote(name)} is not a label.")
        return f"{repo.path}/labels/{percent(name, safe='')}"

    @staticmethod
    def _what(repo: WriteRepo, name: str) -> str:
        return f"label {quote(name)} of `{repo.full}`"
