"""What protects the user: taint tracking, consent, lockdown, and the removal of invisible text."""
