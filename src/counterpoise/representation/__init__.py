"""What a network's layers put out, and arithmetic on it that both mechanisms and measures need."""
