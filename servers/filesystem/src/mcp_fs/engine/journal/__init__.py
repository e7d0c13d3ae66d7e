"""What the tools changed, recorded before each change, with the old contents."""
