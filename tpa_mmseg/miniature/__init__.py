"""The miniature world: a painted, labelled benchmark with tiny networks that were really trained on it."""
