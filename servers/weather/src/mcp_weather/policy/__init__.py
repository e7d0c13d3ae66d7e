"""The only room that refuses: it decides what is a place, a day, a unit, and makes the engine's types."""
