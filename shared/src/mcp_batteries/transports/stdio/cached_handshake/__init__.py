"""The front: it gives a server's first answers, kept from the last start, before the server is ready (`--no-front`).

`store` keeps the answers, `replay` gives them, `input` reads standard input meanwhile.
"""
