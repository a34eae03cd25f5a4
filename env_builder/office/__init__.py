"""What office apps and files held over time, from the events of logs."""
