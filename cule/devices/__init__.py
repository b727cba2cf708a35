"""CPUs and GPUs: which there are, what a build has code for, the run-time compiler."""
