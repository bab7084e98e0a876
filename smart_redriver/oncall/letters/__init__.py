"""Letters in hand: which are meant, looking at them without taking them, and how they are shown and written down."""
