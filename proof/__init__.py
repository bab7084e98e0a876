"""The proof: the protocol of redriving as a model that a checker explores to its end. See docs/proof.md."""
