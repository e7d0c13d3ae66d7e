"""The weather services: the queries to them, the client that sends these, and what their documents say."""
