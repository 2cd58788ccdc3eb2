"""What jobs leave between stages, how far they are, and whether their counts are right."""
