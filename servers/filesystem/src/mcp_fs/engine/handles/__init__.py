"""Handles of the operating system: how a trusted path is opened, locked and described, never by its name twice."""
