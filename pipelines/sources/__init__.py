"""Live sources: from a platform's pages to files in the folder that a run reads."""
