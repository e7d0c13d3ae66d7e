"""GitHub on loopback, as GitHub's own descriptions have it: every request is judged, answers come from examples."""

from github_server.oracle.server import Oracle, Seen, violations

__all__ = ["Oracle", "Seen", "violations"]
