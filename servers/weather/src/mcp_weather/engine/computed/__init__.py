"""What is computed here and fetched nowhere: units, times, percentiles, sun and moon, sums and pictures."""
