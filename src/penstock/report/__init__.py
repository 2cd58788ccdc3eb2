"""What people are shown of runs and measurements: tables, figures, findings."""
