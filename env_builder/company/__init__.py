"""A company's apps as one app of an environment: what it holds, and what traces teach of how the company set its apps up."""
