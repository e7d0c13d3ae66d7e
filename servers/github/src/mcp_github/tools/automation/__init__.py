"""Tools for what runs by itself: Actions and security alerts."""
