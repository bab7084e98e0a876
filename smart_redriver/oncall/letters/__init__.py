"""Letters in hand: select them, look at them without taking them, show them, and write them to files."""
