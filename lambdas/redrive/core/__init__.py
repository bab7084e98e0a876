"""What the re-driver decides, and what it decides about. Pure: no AWS, no clock, no environment."""
