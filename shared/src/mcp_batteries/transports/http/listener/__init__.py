"""The listening socket, TLS, the connections and the end of the process."""
