"""Publishing releases; reading them is among `repositories`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcp_batteries.errors import NotFound, quote
from mcp_github.client.api import Api
from mcp_github.models import Done
from mcp_github.policy import Ref, WriteRepo
from mcp_github.requests.code.repositories import default_branch, find_release, refuse_workflows, sha_of

__all__ = ["Releases"]


@dataclass(frozen=True)
class Releases:
    api: Api

    async def create(self, repo: WriteRepo, body: dict[str, Any]) -> Done:
        what = f"release {quote(str(body['tag_name']))} of `{repo.full}`"
        await self._refuse_unseen(repo, str(body["tag_name"]), body.get("target_commitish"))
        made = await self.api.write("POST", f"{repo.path}/releases", what, body, repo=repo)
        return self._done(repo, "Created", made.data)

    async def edit(self, repo: WriteRepo, tag: Ref, changes: dict[str, Any]) -> Done:
        what = f"release {quote(tag.name)} of `{repo.full}`"
        found = (await find_release(self.api, repo, tag, quiet=True)).data
        if changes.get("draft") is False:
            # Only now its tag is made, perhaps where somebody else had it point.
            await self._refuse_unseen(repo, tag.name, found.get("target_commitish"))
        made = await self.api.write("PATCH", f"{repo.path}/releases/{int(found['id'])}", what, changes, repo=repo)
        return self._done(repo, "Changed", made.data)

    async def delete(self, repo: WriteRepo, tag: Ref) -> Done:
        what = f"release {quote(tag.name)} of `{repo.full}`"
        found = (await find_release(self.api, repo, tag, quiet=True)).data
        await self.api.write("DELETE", f"{repo.path}/releases/{int(found['id'])}", what, repo=repo)
        return Done(done=f"Deleted release {tag.name}; the tag stays.")

    async def _refuse_unseen(self, repo: WriteRepo, tag: str, target: str | None) -> None:
        """Raise `Refused` for a release of what no branch of the repository has, or whose workflows would run anew.

        A commit of any fork has a sha here too, and workflows run on a tag or a release as they stand at its commit.
        """
        ref = self.api.policy.ref
        default, at = await default_branch(self.api, repo), ref(tag).path
        try:
            what = f"tag {quote(tag)} of `{repo.full}`"
            await self.api.get(f"{repo.path}/git/ref/tags/{at}", what, quiet=True)
            sha = str((await self.api.get(f"{repo.path}/commits/tags/{at}", what, quiet=True)).data["sha"])
        except NotFound:
            if target is None or target == default:
                return
            sha = await sha_of(self.api, repo, ref(target))
            if sha.startswith(target):
                await self._refuse_elsewhere(repo, default, sha)
        await refuse_workflows(self.api, repo, sha)

    async def _refuse_elsewhere(self, repo: WriteRepo, default: str, sha: str) -> None:
        what, base = f"commit `{sha}` of `{repo.full}`", self.api.policy.ref(default)
        compared = await self.api.get(f"{repo.path}/compare/{base.path}...{sha}", what, quiet=True)
        self.api.policy.require_own_commit(compared.data.get("status"), what)

    @staticmethod
    def _done(repo: WriteRepo, verb: str, data: dict[str, Any]) -> Done:
        tag = data.get("tag_name")
        return Done(done=f"{verb} release {tag}.", uri=f"{repo.uri}/releases/{tag}", url=data.get("html_url"))
