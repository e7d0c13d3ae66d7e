"""Requests for what runs by itself: workflow runs, their logs and artifacts, checks and security alerts."""
