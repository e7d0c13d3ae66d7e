"""What a request passes before it is read: the host's name, the size of its body, quotas, the queue."""
