"""What the tests of mcp-postgres share."""

from markers import anyio_backend as anyio_backend
