"""How things stand: read at once, told as facts in words."""
