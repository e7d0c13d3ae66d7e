"""Tools for what people plan and discuss: issues, pull requests, discussions and projects."""
