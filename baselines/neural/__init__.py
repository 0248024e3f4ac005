"""What learners with networks play the game with: costs as rewards, replay, networks, the cost player, the judges."""
