"""How a request is answered: without a session since 2026-07-28, in a session before."""
