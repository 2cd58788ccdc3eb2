"""Pure choices with their reasons, in families; each family's catalogue lists its policies."""
