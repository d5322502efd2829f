"""What a hidden label, a useful one and a release have in common, exactly: for discrete models, in nats."""
