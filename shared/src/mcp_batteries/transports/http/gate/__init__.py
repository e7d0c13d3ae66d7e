"""What a request passes before it is answered: the host's name, the form and size of its message, quotas, the queue."""
