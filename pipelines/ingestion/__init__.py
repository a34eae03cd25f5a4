"""Read log files into the warehouse: the ledger of files, reading by worker processes, duplicate records."""
