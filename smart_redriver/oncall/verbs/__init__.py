"""What the commands do, one module a verb (two where they are opposites). How they are typed is in `commands`."""
