"""Answer requests of a web site in the runtime: pages as trees, behind one port that several hosts share."""
