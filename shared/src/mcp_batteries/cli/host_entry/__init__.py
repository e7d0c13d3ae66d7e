"""The entry of a server for a host's configuration, as `--print-config` prints it and `--install` writes it.

What differs between hosts is in the files of `mcp_batteries.hosts`.
"""
