"""How this server talks to GitHub: tokens, requests, rate limits, refusals and waiting."""
