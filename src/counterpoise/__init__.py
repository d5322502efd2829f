"""counterpoise: decide, and show, how private, accurate, explainable and fair an image classifier is to be."""

__version__ = "0.1.0"
