"""What people are shown of measurements: figures, and numbers as text."""
