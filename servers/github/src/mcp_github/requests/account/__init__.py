"""Requests for what belongs to the user: people, notifications, gists and stars."""
