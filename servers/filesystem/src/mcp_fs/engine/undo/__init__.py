"""Taking back what the tools changed: what was there is kept before it is replaced, also for after a crash."""
