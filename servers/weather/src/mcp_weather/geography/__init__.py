"""What words and numbers say about the globe: coordinates, countries, and the results of a geocoder."""
