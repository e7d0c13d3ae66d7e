"""What the tests of outside evidence share: the imitation of GitHub, and the one token there is."""

from github_server.conftest import oracle, token

__all__ = ["oracle", "token"]
