"""What is known of a bundle: the tables and what they mean, thresholds of queries, the store that holds them."""
