"""What benchmarks and experiments share: findings, their tables and page, the command line."""
