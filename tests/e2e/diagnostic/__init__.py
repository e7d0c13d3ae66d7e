"""A server made of what the official conformance suite asks a server to have, on this repository's own bootstrap.

It passes the suite in full (`test_conformance`): what a wrapper breaks that the SDK got right is seen there. The names
and the words are the suite's.
"""
