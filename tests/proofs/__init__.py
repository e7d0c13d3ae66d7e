"""Proofs: thousands of cases made by a seed, each judged by something that is not ours or by what is promised."""
