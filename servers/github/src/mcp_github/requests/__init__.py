"""What each toolset sends to GitHub and makes of the answers, one module a subject."""
