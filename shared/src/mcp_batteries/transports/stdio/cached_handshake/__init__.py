"""The first answers of a server, kept from its last start and given before it is ready."""
