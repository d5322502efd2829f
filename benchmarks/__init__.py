"""What is measured on a clock: never in a test, always in one run on one machine."""
