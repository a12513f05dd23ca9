"""Rules, their tests, and how their answers are weighed; what else would decide."""
