"""Exports, imports and backups: files beside the database."""
