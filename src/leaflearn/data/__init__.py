"""What is learnt from: grouped examples for a learner, domains and their truth for a benchmark."""
