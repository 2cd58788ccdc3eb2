"""What joins policies are told."""
