"""Pictures and pages. Here, and nowhere below, matplotlib is imported."""
