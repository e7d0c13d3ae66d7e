"""Changes files and folders: writes, edits, patches, copies, moves and deletions, all or nothing."""
