"""GraphQL queries for what REST lacks: review threads, commits signed by GitHub, drafts."""

from __future__ import annotations

__all__ = [
    "ADD_DISCUSSION_COMMENT", "ADD_THREAD", "AUTO_MERGE", "BLAME", "BRANCHES", "CATEGORIES",
    "COMMIT_ON_BRANCH",
    "CREATE_DISCUSSION", "CREATE_PROJECT", "CREATE_PROJECT_UPDATE", "DELETE_DISCUSSION_COMMENT", "DISCUSSION",
    "DISCUSSIONS",
    "DISCUSSION_COMMENT", "DRAFT", "EDIT_DISCUSSION_COMMENT", "EDIT_PROJECT_UPDATE", "ENQUEUE", "MARK_ANSWER",
    "MERGE_STATE", "NODE_PLACE", "PROJECT_UPDATES", "PROJECT_VIEWS", "PULL_FACTS", "PULL_LINKS", "READY", "REPLY",
    "RESOLVE", "TAGS", "THREAD", "THREADS", "UNMARK_ANSWER", "UNRESOLVE",
]  # fmt: skip

THREADS = """
query Threads($owner: String!, $name: String!, $number: Int!, $first: Int!, $after: String) {
  repository(owner: $owner, name: $name) { nameWithOwner pullRequest(number: $number) {
    reviewThreads(first: $first, after: $after) { totalCount pageInfo { hasNextPage endCursor } nodes {
      id isResolved isOutdated path line startLine diffSide startDiffSide originalLine originalStartLine subjectType
      comments(first: 30) { totalCount nodes {
        databaseId author { __typename login } authorAssociation createdAt body diffHunk
      } }
    } }
  } }
}
"""

THREAD = """
query Thread($id: ID!, $first: Int, $after: String, $last: Int, $before: String) {
  node(id: $id) { ... on PullRequestReviewThread {
    pullRequest { number } repository { nameWithOwner }
    comments(first: $first, after: $after, last: $last, before: $before) {
      totalCount pageInfo { hasNextPage endCursor hasPreviousPage startCursor } nodes {
        databaseId author { __typename login } authorAssociation createdAt body
      }
    }
  } }
}
"""

NODE_PLACE = """
query NodePlace($id: ID!) {
  node(id: $id) {
    __typename
    ... on PullRequestReviewThread { pullRequest { number } repository { nameWithOwner } }
    ... on Discussion { number repository { nameWithOwner } }
    ... on ProjectV2StatusUpdate { project { number owner { ... on User { login } ... on Organization { login } } } }
    ... on DiscussionComment { discussion { number repository { nameWithOwner } } }
  }
}
"""

REPLY = """
mutation Reply($input: AddPullRequestReviewThreadReplyInput!) {
  addPullRequestReviewThreadReply(input: $input) { comment { databaseId url body } }
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

MERGE_STATE = """
query MergeState($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { nameWithOwner pullRequest(number: $number) {
    isMergeQueueEnabled mergeQueueEntry { position state estimatedTimeToMerge }
  } }
}
"""

PULL_LINKS = """
query PullLinks($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { nameWithOwner pullRequest(number: $number) {
    isMergeQueueEnabled mergeQueueEntry { position state estimatedTimeToMerge }
    number reviewDecision statusCheckRollup { state }
    latestOpinionatedReviews(first: 100) { nodes { author { __typename login } state } }
    closingIssuesReferences(first: 20) { totalCount nodes {
      number title state authorAssociation repository { nameWithOwner }
    } }
  } }
}
"""

# Each part takes GitHub time: only what is asked for is worked out.
PULL_FACTS = """
query PullFacts(
  $ids: [ID!]!, $branches: Boolean!, $size: Boolean!, $merge: Boolean!, $requests: Boolean!, $reviews: Boolean!,
  $checks: Boolean!, $closes: Boolean!
) {
  nodes(ids: $ids) { ... on PullRequest {
    id number repository { nameWithOwner }
    ... @include(if: $branches) {
      headRefName headRefOid baseRefName baseRefOid headRepository { nameWithOwner } headRepositoryOwner { login }
    }
    ... @include(if: $size) {
      additions deletions changedFiles commits(first: 0) { totalCount } comments(first: 0) { totalCount }
    }
    ... @include(if: $merge) {
      mergeable mergeStateStatus mergedBy { __typename login } autoMergeRequest { mergeMethod }
    }
    reviewRequests(first: 100) @include(if: $requests) { nodes { requestedReviewer {
      ... on User { login } ... on Bot { __typename login } ... on Mannequin { login } ... on Team { slug }
    } } }
    reviewDecision @include(if: $reviews)
    latestOpinionatedReviews(first: 100) @include(if: $reviews) { nodes { author { __typename login } state } }
    statusCheckRollup @include(if: $checks) { state }
    closingIssuesReferences(first: 20) @include(if: $closes) { totalCount nodes {
      number title state authorAssociation repository { nameWithOwner }
    } }
  } }
}
"""

ENQUEUE = """
mutation Enqueue($input: EnqueuePullRequestInput!) {
  enqueuePullRequest(input: $input) { mergeQueueEntry { position state estimatedTimeToMerge } }
}
"""

AUTO_MERGE = """
mutation AutoMerge($input: EnablePullRequestAutoMergeInput!) {
  enablePullRequestAutoMerge(input: $input) { pullRequest {
    number autoMergeRequest { mergeMethod commitHeadline commitBody }
  } }
}
"""

COMMIT_ON_BRANCH = """
mutation CommitOnBranch($input: CreateCommitOnBranchInput!) {
  createCommitOnBranch(input: $input) { commit { oid url } }
}
"""

BRANCHES = """
query Branches($owner: String!, $name: String!, $first: Int!, $after: String) {
  repository(owner: $owner, name: $name) { nameWithOwner
    refs(refPrefix: "refs/heads/", first: $first, after: $after) {
      totalCount pageInfo { hasNextPage endCursor } nodes {
        name target { oid ... on Commit { committedDate author { name user { login } } } }
      }
    }
  }
}
"""

TAGS = """
query Tags($owner: String!, $name: String!, $first: Int!, $after: String) {
  repository(owner: $owner, name: $name) { nameWithOwner
    refs(refPrefix: "refs/tags/", first: $first, after: $after, orderBy: {field: TAG_COMMIT_DATE, direction: DESC}) {
      totalCount pageInfo { hasNextPage endCursor } nodes {
        name target { __typename oid ... on Tag { message tagger { name date user { login } } target { oid } } }
      }
    }
  }
}
"""
ADD_THREAD = """
mutation AddThread($input: AddPullRequestReviewThreadInput!) {
  addPullRequestReviewThread(input: $input) { thread { id path line startLine diffSide } }
}
"""
PROJECT_VIEWS = """
query ProjectViews($owner: String!, $number: Int!, $first: Int!, $after: String) {
  repositoryOwner(login: $owner) { ... on ProjectV2Owner { projectV2(number: $number) { public
    views(first: $first, after: $after) {
      totalCount pageInfo { hasNextPage endCursor } nodes { number name layout filter updatedAt }
    }
  } } }
}
"""
PROJECT_UPDATES = """
query ProjectUpdates($owner: String!, $number: Int!, $first: Int!, $after: String) {
  repositoryOwner(login: $owner) { ... on ProjectV2Owner { projectV2(number: $number) { public
    statusUpdates(first: $first, after: $after) {
      totalCount pageInfo { hasNextPage endCursor } nodes {
        id status body creator { __typename login } createdAt startDate targetDate
      }
    }
  } } }
}
"""
CREATE_PROJECT = """
mutation CreateProject($input: CreateProjectV2Input!) {
  createProjectV2(input: $input) { projectV2 { number url title } }
}
"""
CREATE_PROJECT_UPDATE = """
mutation CreateProjectUpdate($input: CreateProjectV2StatusUpdateInput!) {
  createProjectV2StatusUpdate(input: $input) { statusUpdate { id status body startDate targetDate } }
}
"""
EDIT_PROJECT_UPDATE = """
mutation EditProjectUpdate($input: UpdateProjectV2StatusUpdateInput!) {
  updateProjectV2StatusUpdate(input: $input) { statusUpdate { id status body startDate targetDate } }
}
"""
CREATE_DISCUSSION = """
mutation CreateDiscussion($input: CreateDiscussionInput!) {
  createDiscussion(input: $input) { discussion { number url title body category { id } } }
}
"""
BLAME = """
query Blame($owner: String!, $name: String!, $ref: String!, $path: String!) {
  repository(owner: $owner, name: $name) { nameWithOwner isEmpty object(expression: $ref) { __typename
    ...Lines
    ... on Tag { target { ...Lines } }
  } }
}
fragment Lines on Commit { oid blame(path: $path) { ranges {
  startingLine endingLine
  commit { oid messageHeadline committedDate author { name user { login } } }
} } }
"""

CATEGORIES = """
query Categories($owner: String!, $name: String!) {
  repository(owner: $owner, name: $name) { nameWithOwner id discussionCategories(first: 50) {
    nodes { id name slug description isAnswerable }
  } }
}
"""

DISCUSSIONS = """
query Discussions($owner: String!, $name: String!, $category: ID, $answered: Boolean, $first: Int!, $after: String) {
  repository(owner: $owner, name: $name) { nameWithOwner
    discussions(categoryId: $category, answered: $answered, first: $first, after: $after,
                orderBy: {field: UPDATED_AT, direction: DESC}) {
      totalCount pageInfo { hasNextPage endCursor } nodes {
        number title author { __typename login } authorAssociation category { name } isAnswered closed updatedAt
        comments(first: 0) { totalCount }
      }
    }
  }
}
"""

DISCUSSION = """
query Discussion($owner: String!, $name: String!, $number: Int!, $first: Int!, $after: String) {
  repository(owner: $owner, name: $name) { nameWithOwner discussion(number: $number) {
    id number title body author { __typename login } authorAssociation category { name } isAnswered closed createdAt url
    answer { id }
    comments(first: $first, after: $after) { totalCount pageInfo { hasNextPage endCursor } nodes {
      id author { __typename login } authorAssociation createdAt isAnswer body
      replies(first: 20) { totalCount nodes { id author { __typename login } authorAssociation createdAt body } }
    } }
  } }
}
"""

DISCUSSION_COMMENT = """
query DiscussionComment($id: ID!, $first: Int!, $after: String) {
  node(id: $id) { ... on DiscussionComment {
    id author { __typename login } authorAssociation createdAt isAnswer body
    replies(first: $first, after: $after) { totalCount pageInfo { hasNextPage endCursor } nodes {
      id author { __typename login } authorAssociation createdAt body
    } }
  } }
}
"""

ADD_DISCUSSION_COMMENT = """
mutation AddDiscussionComment($input: AddDiscussionCommentInput!) {
  addDiscussionComment(input: $input) { comment { id url body } }
}
"""

EDIT_DISCUSSION_COMMENT = """
mutation EditDiscussionComment($input: UpdateDiscussionCommentInput!) {
  updateDiscussionComment(input: $input) { comment { id url body } }
}
"""

MARK_ANSWER = """
mutation MarkAnswer($input: MarkDiscussionCommentAsAnswerInput!) {
  markDiscussionCommentAsAnswer(input: $input) { discussion { number url answer { id } } }
}
"""

UNMARK_ANSWER = """
mutation UnmarkAnswer($input: UnmarkDiscussionCommentAsAnswerInput!) {
  unmarkDiscussionCommentAsAnswer(input: $input) { discussion { number url answer { id } } }
}
"""

DELETE_DISCUSSION_COMMENT = """
mutation DeleteDiscussionComment($input: DeleteDiscussionCommentInput!) {
  deleteDiscussionComment(input: $input) { comment { id } }
}
"""
