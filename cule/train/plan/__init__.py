"""Plans a program of operations over time: dependences, order, memory, execution."""
