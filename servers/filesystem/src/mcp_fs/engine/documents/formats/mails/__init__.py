"""Mails, as they travel and as Outlook saves them, and the rich text that is in these."""
