"""What is known of the consumer, and what that allows. Pure."""
