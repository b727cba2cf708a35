"""What a process goes through: forks, signals."""
