"""Scripts that a caller writes: JavaScript in a process of its own, which reaches nothing but tools."""
