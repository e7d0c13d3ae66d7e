"""The weather services: what their documents say, and how to fetch them through the cache."""
