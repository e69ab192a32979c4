"""The deployables: auth, lobby, match, ranking, gateway, and the small kit they share."""
