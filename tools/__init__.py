"""What makes and publishes the project: documents, pages, bundles, registry entries, pictures, translations."""
