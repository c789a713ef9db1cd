"""The fused score of an edge, its features, and the learned ranking over them."""
