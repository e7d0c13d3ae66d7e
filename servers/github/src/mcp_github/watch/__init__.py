"""What tells that something on GitHub changed: conditional requests, webhook deliveries and the watch list."""
