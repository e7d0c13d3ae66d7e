"""Requests for what people plan and discuss: issues, pull requests, reviews, discussions and projects."""
