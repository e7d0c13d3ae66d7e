"""Copies, moves and deletes files, links and folders: as entries of their folder, whatever they hold."""
