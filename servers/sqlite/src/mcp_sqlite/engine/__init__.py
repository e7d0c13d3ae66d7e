"""The work, on trusted types: worker processes kept warm, pages, saved queries, the demo data."""
