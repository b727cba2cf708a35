"""DQN with a replay memory on the device."""
