"""What is asked of GraphQL, where REST has no answer: threads of reviews, commits GitHub signs, drafts."""

from __future__ import annotations

__all__ = ["COMMIT_ON_BRANCH", "DRAFT", "NODE_PLACE", "READY", "REPLY", "RESOLVE", "THREADS", "UNRESOLVE"]

THREADS = """
query Threads($owner: String!, $name: String!, $number: Int!, $first: Int!, $after: String) {
  repository(owner: $owner, name: $name) { nameWithOwner pullRequest(number: $number) {
    reviewThreads(first: $first, after: $after) { totalCount pageInfo { hasNextPage endCursor } nodes {
      id isResolved isOutdated path line startLine diffSide
      comments(first: 30) { totalCount nodes {
        databaseId author { login } authorAssociation createdAt body
      } }
    } }
  } }
}
"""

NODE_PLACE = """
query NodePlace($id: ID!) {
  node(id: $id) {
    __typename
    ... on PullRequestReviewThread { pullRequest { number } repository { nameWithOwner } }
    ... on Discussion { number repository { nameWithOwner } }
    ... on DiscussionComment { discussion { number repository { nameWithOwner } } }
  }
}
"""

REPLY = """
mutation Reply($input: AddPullRequestReviewThreadReplyInput!) {
  addPullRequestReviewThreadReply(input: $input) { comment { databaseId url } }
}
"""

RESOLVE = """
mutation Resolve($input: ResolveReviewThreadInput!) {
  resolveReviewThread(input: $input) { thread { id isResolved } }
}
"""

UNRESOLVE = """
mutation Unresolve($input: UnresolveReviewThreadInput!) {
  unresolveReviewThread(input: $input) { thread { id isResolved } }
}
"""

DRAFT = """
mutation Draft($input: ConvertPullRequestToDraftInput!) {
  convertPullRequestToDraft(input: $input) { pullRequest { isDraft } }
}
"""

READY = """
mutation Ready($input: MarkPullRequestReadyForReviewInput!) {
  markPullRequestReadyForReview(input: $input) { pullRequest { isDraft } }
}
"""

COMMIT_ON_BRANCH = """
mutation CommitOnBranch($input: CreateCommitOnBranchInput!) {
  createCommitOnBranch(input: $input) { commit { oid url } }
}
"""
