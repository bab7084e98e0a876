"""What can be typed: arguments, options, help and examples. What the commands do is elsewhere in `oncall`."""
