"""What filters policies are told, and the order that none of them can beat."""
