"""A world in virtual time: AWS as the re-driver meets it, in memory and without waiting."""
