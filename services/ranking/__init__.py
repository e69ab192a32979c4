"""Results that both devices signed, and the ratings and leaderboard that follow from them."""
