"""Refusals that GitHub tells apart by their words alone: who or what stands in the way, and the next move.

GitHub answers 403, 405, 409 or 422 for an organisation's rules, a locked issue and a merge that a rule forbids alike;
"the token may not do that" would blame the wrong one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mcp_batteries.errors import Conflict, Problem, Refused

__all__ = ["known_refusal"]

_LIST_CHECKS = "`list_checks` shows them; with `wait` it waits for those that run."
_ASK_OWNER = "An owner of the organisation can change that; another token of the same user would not help."


@dataclass(frozen=True)
class _Refusal:
    """Words of GitHub's with what they mean.

    Attributes:
        reason: a sentence, in which `{}` is what was asked for.
        problem: the class of the problem; `Conflict` where the state of things stands in the way.
    """

    pattern: re.Pattern[str]
    reason: str
    fix: str
    problem: type[Problem] = Conflict


def _refusal(pattern: str, reason: str, fix: str, problem: type[Problem] = Conflict) -> _Refusal:
    return _Refusal(re.compile(pattern, re.IGNORECASE), reason, fix, problem)


_REFUSALS = (
    # Rules of an organisation, which hold for each token alike.
    _refusal(r"IP allow list|IP address is not (?:permitted|allowed)",
             "The organisation of {} takes requests from certain addresses only, and this server's is none of them.",
             "An owner of the organisation can add the address to its IP allow list; the token is not at fault.",
             Refused),
    _refusal(r"OAuth App access restrictions|third-party application access",
             "The organisation of {} has not approved the app that the token is of.",
             "An owner can approve it; a personal access token of the user works as well.", Refused),
    _refusal(r"SAML (?:SSO|enforcement)|SAML single sign-on",
             "The organisation of {} wants the token authorised for single sign-on.",
             "The user can do that on the page of their tokens, at `Configure SSO`.", Refused),
    _refusal(r"forbids access via a (?:fine-grained )?personal access token|token's lifetime is greater",
             "The organisation of {} does not take tokens of this kind.",
             "The user can make one as the organisation wants it: fine-grained, or with a shorter life.", Refused),
    _refusal(r"two-factor authentication|2FA", "The organisation of {} wants two-factor authentication.",
             "The user can turn it on in their settings.", Refused),
    # What is between people.
    _refusal(r"(?:issue|pull request|conversation|discussion) (?:is|has been) locked|\blocked conversation",
             "{} is locked: only people with write access can comment.",
             "One of them can unlock it; there is no other way to comment."),
    _refusal(r"(?:user|you|author) (?:is|are|have been|has been|were) blocked|^blocked$",
             "The owner of {} has blocked the user of this token.",
             "No other token of the same user helps; leave it, or tell the user.", Refused),
    _refusal(r"interactions? (?:on this repository )?(?:have been|are|is) (?:restricted|limited)|interaction limit",
             "The owner of {} lets only certain people take part for now.", "It ends by itself: try again later.",
             Refused),
    # Runs.
    _refusal(r"created over a month ago|too old to (?:be )?re-?(?:run|tried)",
             "{} is too old: GitHub reruns what is younger than a month.",
             "`run_workflow` starts a new run if the workflow allows it; else a new commit does."),
    _refusal(r"workflow file (?:may be|is) (?:broken|invalid)",
             "{} can't be run again: its workflow file is not valid.", "Mend the file with `write_files`."),
    _refusal(r"already running|is (?:already )?in progress and|cannot be (?:retried|re-?run)",
             "{} can't be run again as it is.", "`get_run` with `wait` waits for its end."),
    _refusal(r"cannot cancel a workflow", "{} has ended, so there is nothing to cancel.", "`get_run` shows how."),
    # Merges.
    _refusal(r"merge commits are not allowed", "{}: its repository does not allow merge commits.",
             "Call `run_merge` with method=squash, or with method=rebase."),
    _refusal(r"squash merg\w+ (?:are|is) not allowed", "{}: its repository does not allow squashing.",
             "Call `run_merge` with method=merge, or with method=rebase."),
    _refusal(r"rebase merg\w+ (?:are|is) not allowed", "{}: its repository does not allow rebasing.",
             "Call `run_merge` with method=squash, or with method=merge."),
    _refusal(r"must not contain merge commits|linear history", "{}: the base branch wants a linear history.",
             "Call `run_merge` with method=squash, or with method=rebase."),
    _refusal(r"still a draft|is in draft", "{} is a draft.",
             "`edit_pull_request` with draft=false makes it ready for review."),
    _refusal(r"in clean status", "{} can be merged now.", "Call `run_merge` without when_ready."),
    _refusal(r"auto[- ]merge is not allowed", "{}: its repository does not allow auto-merge.",
             "Its owner can turn that on; `list_checks` with `wait` says when it can be merged."),
    _refusal(r"merge queue", "{}: the base branch takes changes through its merge queue only.",
             "`run_merge` with when_ready=true puts it into the queue."),
    _refusal(r"base branch was modified|out[- ]of[- ]date|not up to date|branch is behind",
             "{} is behind its base branch.",
             "`edit_pull_request` with update_branch=true updates it; look at its checks, then merge the new head."),
    _refusal(r"head branch was modified", "{} has another head by now.", "Look at what changed: `read_diff`."),
    _refusal(r"approving review|code owner review|approval from someone|review is required|changes requested",
             "{}: a rule of the base branch wants a review.",
             "`list_reviews` shows those there are; `edit_pull_request` with `reviewers` asks for one."),
    _refusal(r"conversations? must be resolved|unresolved conversation",
             "{}: a rule of the base branch wants all conversations resolved.",
             "`list_reviews` with unresolved=true shows them, `edit_thread` resolves one."),
    _refusal(r"required status checks?|required workflow|checks? (?:is|are) (?:expected|failing|pending)",
             "{}: a rule of the base branch wants checks that have not passed.", _LIST_CHECKS),
    _refusal(r"valid signatures|must be signed|verified signatures", "{}: a rule wants signed commits.",
             "method=squash makes one that GitHub signs."),
    _refusal(r"not authorized to push to this branch", "{}: only certain people may push to the base branch.",
             "One of them can merge it.", Refused),
    _refusal(r"^(?:pull request is )?not mergeable|merge conflict|has conflicts",
             "{} can't be merged: its changes conflict with the base branch, or GitHub is still working that out.",
             "`get_pull_request` shows `mergeable`; update the branch and resolve the conflicts there."),
    _refusal(r"repository rule violations", "A rule of the repository forbids that to {}.",
             "`list_rules` shows the rules."),
)  # fmt: skip


def known_refusal(message: str, description: str, quotation: str) -> Problem | None:
    """Return the problem that GitHub's words stand for; None if they say nothing that is known.

    Args:
        quotation: the words, as a sentence.
    """
    for refusal in _REFUSALS:
        if refusal.pattern.search(message):
            reason = refusal.reason.format(description)
            return refusal.problem(f"{reason[:1].upper()}{reason[1:]}{quotation}", refusal.fix)
    return None
