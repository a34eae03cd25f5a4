"""What is made of the work that a company's people really did: tasks across its apps, and demonstrations."""
