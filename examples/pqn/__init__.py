"""PQN: see pqn.py."""
